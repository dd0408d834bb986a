# Written by tools/client_operations.py from agentbox/contracts.

"""Actions of agents that require an approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.approvals import Approval, Approvals


class AsyncApprovalsClient:
    """Actions of agents that require an approval. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def list(self) -> Approvals:
        """Pending actions, and those of the last day; oldest first."""
        from agentbox.contracts.approvals import Approvals

        response = await self._box.request("list_approvals")
        return decode(Approvals, response)

    async def get(self, id: str) -> Approval:
        """One approval, with its real parameters."""
        from agentbox.contracts.approvals import Approval

        response = await self._box.request("get_approval", {"id": id})
        return decode(Approval, response)

    async def decide(self, id: str, verdict: str, *, reason: str = "") -> Approval:
        """Approves one use, or denies it. Clients with this scope that follow `/v1/events/stream`
        are notified; without any, such actions are denied at once. 409 if it is already decided."""
        from agentbox.contracts.approvals import Approval

        response = await self._box.request(
            "decide_approval", {"id": id}, body={"verdict": verdict, "reason": reason}
        )
        return decode(Approval, response)

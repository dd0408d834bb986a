# Written by tools/client_operations.py from agentbox/contracts.

"""Tokens and cost of model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.usage import UsageReport


class AsyncUsageClient:
    """Tokens and cost of model calls. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def report(
        self, *, by: str = "agent", since: str | None = None, limit: int = 100
    ) -> UsageReport:
        """Tokens and cost of the model calls since a time, by agent, task, model or day."""
        from agentbox.contracts.usage import UsageReport

        response = await self._box.request(
            "usage_report", query={"by": by, "since": since, "limit": limit}
        )
        return decode(UsageReport, response)

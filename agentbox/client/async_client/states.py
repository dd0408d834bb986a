# Written by tools/client_operations.py from agentbox/contracts.

"""The memory and pods of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.states import State, StateHolds, States


class AsyncStatesClient:
    """The memory and pods of runs. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def list(
        self, *, limit: int = 100, cursor: str | None = None, legacy: bool = False
    ) -> States:
        """States that the caller created, oldest first; an admin sees all."""
        from agentbox.contracts.states import States

        response = await self._box.request(
            "list_states", query={"limit": limit, "cursor": cursor, "legacy": legacy}
        )
        return decode(States, response)

    async def adopt(self, source: str, name: str) -> State:
        """Adopts data that an agent left under its name before runs had their own states."""
        from agentbox.contracts.states import State

        response = await self._box.request("adopt_state", body={"source": source, "name": name})
        return decode(State, response)

    async def show(self, id: str) -> State:
        """One state by id or name, with its contents."""
        from agentbox.contracts.states import State

        response = await self._box.request("show_state", {"id": id})
        return decode(State, response)

    async def remove(self, id: str) -> StateHolds:
        """Removes memory and pods of an unused state, by id or name; returns their number."""
        from agentbox.contracts.states import StateHolds

        response = await self._box.request("remove_state", {"id": id})
        return decode(StateHolds, response)

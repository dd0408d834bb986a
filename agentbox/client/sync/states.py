# Written by tools/sync_client.py from async_client/states.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""The memory and pods of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.states import State, StateHolds, States


class StatesClient:
    """The memory and pods of runs. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def list(self, *, limit: int = 100, cursor: str | None = None, legacy: bool = False) -> States:
        """States that the caller created, oldest first; an admin sees all."""
        from agentbox.contracts.states import States

        response = self._box.request(
            "list_states", query={"limit": limit, "cursor": cursor, "legacy": legacy}
        )
        return decode(States, response)

    def adopt(self, source: str, name: str) -> State:
        """Adopts data that an agent left under its name before runs had their own states."""
        from agentbox.contracts.states import State

        response = self._box.request("adopt_state", body={"source": source, "name": name})
        return decode(State, response)

    def show(self, id: str) -> State:
        """One state by id or name, with its contents."""
        from agentbox.contracts.states import State

        response = self._box.request("show_state", {"id": id})
        return decode(State, response)

    def remove(self, id: str) -> StateHolds:
        """Removes memory and pods of an unused state, by id or name; returns their number."""
        from agentbox.contracts.states import StateHolds

        response = self._box.request("remove_state", {"id": id})
        return decode(StateHolds, response)

"""States of a box: the memory and pods of runs."""

from collections.abc import Mapping
from typing import Any

from agentbox.client.async_client.api_caller import AsyncApiCaller


class AsyncStatesClient:
    """States: the memory and pods of runs. Returns records as JSON. Raises ApiError,
    BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def list(
        self, *, legacy: bool = False, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Mapping[str, Any]], str | None]:
        """A page of states in order of id, and the next cursor. With `legacy`, only the names of
        data stored before runs had their own state."""
        query = {"legacy": "true" if legacy else None, "limit": limit, "cursor": cursor}
        page = await self._box.call("list_states", query=query)
        return (
            ([{"name": name} for name in page["legacy"]], None)
            if legacy
            else (page["items"], page["next_cursor"])
        )

    async def get(self, state: str) -> Mapping[str, Any]:
        """A state by id or name, with its contents."""
        document: Mapping[str, Any] = await self._box.call("show_state", {"id": state})
        return document

    async def remove(self, state: str) -> Mapping[str, Any]:
        """Returns the number of removed memory entries and pods. ApiError with code `state-busy`
        while an agent uses it."""
        removed: Mapping[str, Any] = await self._box.call("remove_state", {"id": state})
        return removed

    async def adopt(self, source: str, name: str) -> Mapping[str, Any]:
        """Turns the data of `legacy.<agent>` into a state with that name."""
        document: Mapping[str, Any] = await self._box.call(
            "adopt_state", body={"source": source, "name": name}
        )
        return document

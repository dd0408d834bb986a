"""What operators do with a box: its tokens, and the mesh."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.client.async_client.api_caller import AsyncApiCaller


class AsyncTokensClient:
    """Named tokens. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """All tokens that are not revoked, without their values."""
        items: Sequence[Mapping[str, Any]] = (await self._box.call("list_tokens"))["items"]
        return items

    async def create(self, name: str, scopes: Sequence[str], **members: Any) -> Mapping[str, Any]:
        """Creates a token; its `value` is returned only once. `members`: the other members of a
        NewToken."""
        token: Mapping[str, Any] = await self._box.call(
            "create_token", body={"name": name, "scopes": list(scopes), **members}
        )
        return token

    async def revoke(self, token_id: str) -> None:
        """Revokes a token at once."""
        await self._box.call("revoke_token", {"id": token_id})


class AsyncMeshClient:
    """Boxes joined to this one, and this box's own membership. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def _call(
        self, name: str, parameters: Mapping[str, str] | None = None, **options: Any
    ) -> Mapping[str, Any]:
        document: Mapping[str, Any] = await self._box.call(name, parameters, **options)
        return document

    async def register(self, registration: Mapping[str, Any]) -> Mapping[str, Any]:
        """Registers a box: returns a session with its token and the slot endpoints."""
        return await self._call("mesh_register", body=registration)

    async def heartbeat(self, heartbeat: Mapping[str, Any]) -> Mapping[str, Any]:
        """Renews the session of the sent token; a 410 is a response with the reason."""
        return await self._call("mesh_heartbeat", body=heartbeat, accepted=(410,))

    async def deregister(self, deregistration: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ends the session of the sent token."""
        return await self._call("mesh_deregister", body=deregistration)

    async def sessions(
        self, *, limit: int = 100, cursor: str | None = None, **filters: str | None
    ) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """A page of sessions filtered by state, instance, image, and the next cursor."""
        page = await self._call(
            "mesh_sessions", query={**filters, "limit": limit, "cursor": cursor}
        )
        return page["items"], page["next_cursor"]

    async def session(self, session_id: str) -> Mapping[str, Any]:
        """One session."""
        return await self._call("mesh_session", {"id": session_id})

    async def evict(self, session_id: str) -> None:
        """Ends a session and its token at once."""
        await self._box.call("mesh_evict", {"id": session_id})

    async def status(self) -> Mapping[str, Any]:
        """The mode, and the state of a client or the sessions of a host."""
        return await self._call("mesh_status")

    async def join(self) -> Mapping[str, Any]:
        """Retries to join the host now."""
        return await self._call("mesh_join")

    async def outbox(self) -> Sequence[Mapping[str, Any]]:
        """Results for shared beads waiting for the host."""
        items: Sequence[Mapping[str, Any]] = (await self._call("mesh_outbox"))["items"]
        return items

    async def drop(self, item_id: str) -> None:
        """Drops an outbox item."""
        await self._box.call("mesh_drop", {"id": item_id})

"""The mesh over HTTP."""

from typing import TYPE_CHECKING

from agentbox.api.auth.authentication import Caller
from agentbox.api.http.request import ApiRequest
from agentbox.api.mesh.mesh_role import MeshRole
from agentbox.contracts.mesh import (
    Deregister,
    Deregistered,
    Heartbeat,
    HeartbeatReply,
    MeshSession,
    MeshStatus,
    OutboxItems,
    Registered,
    Registration,
    decode_lenient,
)
from agentbox.contracts.mesh_errors import NotAdmitted, SessionEnded
from agentbox.core.records.page import Page
from agentbox.core.slot_errors import NotFound

if TYPE_CHECKING:
    from agentbox.mesh.host.host import Host
    from agentbox.mesh.outbox.outbox import Outbox


class MeshHandlers:
    """A box's messages may have unknown members. `outbox` is None where beads belong to this
    box.
    """

    def __init__(self, mesh: MeshRole, outbox: "Outbox | None") -> None:
        self._mesh, self._outbox = mesh, outbox

    def _host(self) -> "Host":
        """Raises NotAdmitted on a box that is not a mesh host, BackendError while its sessions
        cannot be read.
        """
        host = self._mesh.host
        if host is None:
            raise NotAdmitted(
                "this box is not a mesh host", hint='set mesh.mode = "host" in its manifest'
            )
        host.check_open()
        return host

    async def register(self, request: ApiRequest, caller: Caller) -> Registered:
        host = self._host()
        return await host.register(decode_lenient(Registration, request.body), caller.principal)

    async def heartbeat(self, request: ApiRequest, caller: Caller) -> HeartbeatReply:
        host, session_id = self._host(), _session_id(caller)
        return await host.heartbeat(session_id, decode_lenient(Heartbeat, request.body))

    async def deregister(self, request: ApiRequest, caller: Caller) -> Deregistered:
        host, session_id = self._host(), _session_id(caller)
        message = decode_lenient(Deregister, request.body)
        session = await host.deregister(session_id, message.session_id)
        return Deregistered(session_id=session.id, state=session.state)

    async def list_sessions(
        self,
        state: str | None,
        instance: str | None,
        image: str | None,
        limit: int,
        cursor: str | None,
    ) -> Page[MeshSession]:
        """The cursor is the id of the last session of the previous page."""
        columns = {"state": state, "instance_id": instance, "image_hash": image}
        filters = {column: value for column, value in columns.items() if value is not None}
        sessions = await self._host().page(filters, limit + 1, cursor or "")
        next_cursor = sessions[limit - 1].id if len(sessions) > limit else None
        return Page(items=tuple(sessions[:limit]), next_cursor=next_cursor)

    async def show_session(self, id: str) -> MeshSession:
        return await self._host().show(id)

    async def evict(self, id: str) -> None:
        await self._host().evict(id)

    async def status(self) -> MeshStatus:
        return self._mesh.status()

    async def join(self) -> MeshStatus:
        """Raises NotAdmitted on a box that is not a mesh client."""
        client = self._mesh.client
        if client is None:
            raise NotAdmitted(
                "this box is not a mesh client", hint='set mesh.mode = "client" in its manifest'
            )
        client.join()
        return client.status()

    async def outbox(self) -> OutboxItems:
        """Empty where beads belong to this box."""
        return OutboxItems(items=await self._outbox.items() if self._outbox else ())

    async def drop(self, caller: Caller, id: str) -> None:
        if self._outbox is None:
            raise NotFound(
                "cannot find this item: this box has no outbox", resource="outbox item", id=id
            )
        await self._outbox.drop(id, caller.principal)


def _session_id(caller: Caller) -> str:
    """The session of the token. Raises SessionEnded for a token without one."""
    if not caller.session:
        raise SessionEnded("this token belongs to no session", reason="unknown")
    return caller.session

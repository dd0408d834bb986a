"""The mesh over HTTP."""

from agentbox.adapters.runtime.adapter import Page
from agentbox.api.http.request import ApiRequest
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
from agentbox.core.slot_errors import NotFound
from agentbox.mesh.host.host import Host

LIMIT = (1, 500)
DEFAULT_PAGE = 100
FILTERS = {"state": "state", "instance": "instance_id", "image": "image_hash"}


def _host(request: ApiRequest) -> Host:
    """Raises NotAdmitted on a box that is not a mesh host, BackendError while its sessions cannot
    be read.
    """
    host = request.services.mesh.host
    if host is None:
        raise NotAdmitted(
            "this box is not a mesh host", hint='set mesh.mode = "host" in its manifest'
        )
    host.check_open()
    return host


def _session_id(request: ApiRequest) -> str:
    """The session of the token. Raises SessionEnded for a token without one."""
    if not request.caller.session:
        raise SessionEnded("this token belongs to no session", reason="unknown")
    return request.caller.session


async def register(request: ApiRequest) -> Registered:
    host = _host(request)
    return await host.register(decode_lenient(Registration, request.body), request.caller.principal)


async def heartbeat(request: ApiRequest) -> HeartbeatReply:
    host = _host(request)
    return await host.heartbeat(_session_id(request), decode_lenient(Heartbeat, request.body))


async def deregister(request: ApiRequest) -> Deregistered:
    session = await _host(request).deregister(
        _session_id(request), decode_lenient(Deregister, request.body).session_id
    )
    return Deregistered(session_id=session.id, state=session.state)


async def list_sessions(request: ApiRequest) -> Page[MeshSession]:
    """The cursor is the id of the last session of the previous page."""
    limit = request.integer("limit", DEFAULT_PAGE, *LIMIT)
    filters = {
        column: request.query[name] for name, column in FILTERS.items() if name in request.query
    }
    sessions = await _host(request).page(filters, limit + 1, request.query.get("cursor", ""))
    next_cursor = sessions[limit - 1].id if len(sessions) > limit else None
    return Page(items=tuple(sessions[:limit]), next_cursor=next_cursor)


async def show_session(request: ApiRequest) -> MeshSession:
    return await _host(request).show(request.parameters["id"])


async def evict(request: ApiRequest) -> None:
    await _host(request).evict(request.parameters["id"])


async def status(request: ApiRequest) -> MeshStatus:
    return request.services.mesh.status()


async def join(request: ApiRequest) -> MeshStatus:
    """Raises NotAdmitted on a box that is not a mesh client."""
    client = request.services.mesh.client
    if client is None:
        raise NotAdmitted(
            "this box is not a mesh client", hint='set mesh.mode = "client" in its manifest'
        )
    client.join()
    return client.status()


async def outbox(request: ApiRequest) -> OutboxItems:
    """Empty where beads belong to this box."""
    queue = request.services.outbox
    return OutboxItems(items=await queue.items() if queue else ())


async def drop(request: ApiRequest) -> None:
    queue, item = request.services.outbox, request.parameters["id"]
    if queue is None:
        raise NotFound(
            "cannot find this item: this box has no outbox", resource="outbox item", id=item
        )
    await queue.drop(item, request.caller.principal)

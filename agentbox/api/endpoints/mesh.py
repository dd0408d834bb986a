"""The mesh over HTTP."""

from agentbox.adapters.runtime.adapter import Page
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.mesh import Deregister, Deregistered, Heartbeat, Registration, decode_known
from agentbox.contracts.mesh_errors import NotAdmitted, SessionEnded
from agentbox.core.slot_errors import NotFound
from agentbox.mesh.host.host import Host
from agentbox.mesh.outbox.outbox import OutboxItems

LIMIT = (1, 500)
DEFAULT_PAGE = 100
FILTERS = {"state": "state", "instance": "instance_id", "image": "image_hash"}


def _host(call: Call) -> Host:
    """Raises NotAdmitted on a box that is not a mesh host, BackendError while its sessions cannot
    be read.
    """
    host = call.services.mesh.host
    if host is None:
        raise NotAdmitted(
            "this box is not a mesh host", hint='set mesh.mode = "host" in its manifest'
        )
    host.check_open()
    return host


def _session_id(call: Call) -> str:
    """The session of the token. Raises SessionEnded for a token without one."""
    if not call.caller.session:
        raise SessionEnded("this token belongs to no session", reason="unknown")
    return call.caller.session


async def register(call: Call) -> Reply:
    host = _host(call)
    return Reply(await host.register(decode_known(Registration, call.body), call.caller.principal))


async def heartbeat(call: Call) -> Reply:
    host = _host(call)
    return Reply(await host.heartbeat(_session_id(call), decode_known(Heartbeat, call.body)))


async def deregister(call: Call) -> Reply:
    session = await _host(call).deregister(
        _session_id(call), decode_known(Deregister, call.body).session_id
    )
    return Reply(Deregistered(session_id=session.id, state=session.state))


async def list_sessions(call: Call) -> Reply:
    """The cursor is the id of the last session of the previous page."""
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    filters = {column: call.query[name] for name, column in FILTERS.items() if name in call.query}
    sessions = await _host(call).page(filters, limit + 1, call.query.get("cursor", ""))
    next_cursor = sessions[limit - 1].id if len(sessions) > limit else None
    return Reply(Page(items=tuple(sessions[:limit]), next_cursor=next_cursor))


async def show_session(call: Call) -> Reply:
    return Reply(await _host(call).show(call.parameters["id"]))


async def evict(call: Call) -> Reply:
    await _host(call).evict(call.parameters["id"])
    return Reply(status=204)


async def status(call: Call) -> Reply:
    return Reply(call.services.mesh.status())


async def join(call: Call) -> Reply:
    """Raises NotAdmitted on a box that is not a mesh client."""
    client = call.services.mesh.client
    if client is None:
        raise NotAdmitted(
            "this box is not a mesh client", hint='set mesh.mode = "client" in its manifest'
        )
    client.join()
    return Reply(client.status(), status=202)


async def outbox(call: Call) -> Reply:
    """Empty where beads belong to this box."""
    queue = call.services.outbox
    return Reply(OutboxItems(items=await queue.items() if queue else ()))


async def drop(call: Call) -> Reply:
    queue, item = call.services.outbox, call.parameters["id"]
    if queue is None:
        raise NotFound(
            "cannot find this item: this box has no outbox", resource="outbox item", id=item
        )
    await queue.drop(item, call.caller.principal)
    return Reply(status=204)

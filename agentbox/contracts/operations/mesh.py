"""Operations of the mesh: a box joins a host, sends heartbeats and leaves; an operator lists and
ends sessions.
"""

from functools import partial

from agentbox.contracts.mesh import Deregister, Heartbeat, MeshEndpoints, Registration
from agentbox.contracts.routes import operation
from agentbox.contracts.routes.resource import Resource

_ADMIN, _SESSION = ("mesh:admin",), ("mesh:session",)
_read = partial(operation.read, scope=_ADMIN)
_write = partial(operation.write, scope=_ADMIN)
# Of a box: its messages are short.
_message = partial(operation.write, scope=_SESSION, body_limit=65536)

MESH = Resource(
    "mesh",
    MeshEndpoints,
    operations=(
        _message(
            "register",
            "POST /v1/register",
            "A box joins this host: a session with its token, and the endpoints of the slots. "
            "May be repeated.",
            route="mesh_register",
            scope=("mesh:join",),
            body=Registration,
        ),
        _message(
            "heartbeat",
            "POST /v1/heartbeat",
            "Renews the lease of the session whose token is sent; 410 with the reason once it "
            "has ended.",
            route="mesh_heartbeat",
            body=Heartbeat,
            statuses=(200, 410),
        ),
        _message(
            "deregister",
            "POST /v1/deregister",
            "Ends the session whose token is sent; may be repeated.",
            route="mesh_deregister",
            body=Deregister,
        ),
        _read(
            "list_sessions",
            "GET /v1/mesh/sessions",
            "Current and past sessions of this host, in order of id.",
            route="mesh_sessions",
        ),
        _read("show_session", "GET /v1/mesh/sessions/{id}", "One session.", route="mesh_session"),
        _write(
            "evict",
            "DELETE /v1/mesh/sessions/{id}",
            "Ends a session and its token at once; the box may join again.",
            route="mesh_evict",
            statuses=(204,),
        ),
        _read(
            "status",
            "GET /v1/mesh/status",
            "The role of this box: its mode, and the state of a client or the sessions of a host.",
            route="mesh_status",
        ),
        _write(
            "join",
            "POST /v1/mesh/join",
            "Makes a client that was rejected or waits retry its host now.",
            route="mesh_join",
            statuses=(202,),
        ),
        _read(
            "outbox",
            "GET /v1/mesh/outbox",
            "Results that wait for the bead store, the oldest first.",
            route="mesh_outbox",
        ),
        _write(
            "drop",
            "DELETE /v1/mesh/outbox/{id}",
            "Discards one of them; journaled.",
            route="mesh_drop",
            statuses=(204,),
        ),
    ),
)
RESOURCES = (MESH,)

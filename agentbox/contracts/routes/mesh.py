"""Routes of the mesh: a box joins a host, sends heartbeats and leaves; an operator lists and ends
sessions.
"""

from agentbox.contracts.routes.route import Route

JOIN, SESSION, ADMIN = ("mesh:join",), ("mesh:session",), ("mesh:admin",)
_BODY = 65536  # bytes; the messages of a box are short

MESH: tuple[Route, ...] = (
    Route(
        name="mesh_register",
        method="POST",
        path="/v1/register",
        scope=JOIN,
        handler="mesh.register",
        request="Registration",
        response="Registered",
        body_limit=_BODY,
        summary="A box joins this host: a session with its token, and the endpoints of the slots. "
        "May be repeated.",
    ),
    Route(
        name="mesh_heartbeat",
        method="POST",
        path="/v1/heartbeat",
        scope=SESSION,
        handler="mesh.heartbeat",
        request="Heartbeat",
        response="HeartbeatReply",
        statuses=(200, 410),
        body_limit=_BODY,
        summary="Renews the lease of the session whose token is sent; 410 with the reason once it "
        "has ended.",
    ),
    Route(
        name="mesh_deregister",
        method="POST",
        path="/v1/deregister",
        scope=SESSION,
        handler="mesh.deregister",
        request="Deregister",
        response="Deregistered",
        body_limit=_BODY,
        summary="Ends the session whose token is sent; may be repeated.",
    ),
    Route(
        name="mesh_sessions",
        method="GET",
        path="/v1/mesh/sessions",
        scope=ADMIN,
        handler="mesh.list_sessions",
        response="Page[MeshSession]",
        query=("state", "instance", "image", "limit", "cursor"),
        summary="Current and past sessions of this host, in order of id.",
    ),
    Route(
        name="mesh_session",
        method="GET",
        path="/v1/mesh/sessions/{id}",
        scope=ADMIN,
        handler="mesh.show_session",
        response="MeshSession",
        summary="One session.",
    ),
    Route(
        name="mesh_evict",
        method="DELETE",
        path="/v1/mesh/sessions/{id}",
        scope=ADMIN,
        handler="mesh.evict",
        statuses=(204,),
        summary="Ends a session and its token at once; the box may join again.",
    ),
    Route(
        name="mesh_status",
        method="GET",
        path="/v1/mesh/status",
        scope=ADMIN,
        handler="mesh.status",
        response="MeshStatus",
        summary="The role of this box: its mode, and the state of a client or the sessions of a "
        "host.",
    ),
    Route(
        name="mesh_join",
        method="POST",
        path="/v1/mesh/join",
        scope=ADMIN,
        handler="mesh.join",
        response="MeshStatus",
        statuses=(202,),
        summary="Makes a client that was rejected or waits retry its host now.",
    ),
    Route(
        name="mesh_outbox",
        method="GET",
        path="/v1/mesh/outbox",
        scope=ADMIN,
        handler="mesh.outbox",
        response="OutboxItems",
        summary="Results that wait for the bead store, the oldest first.",
    ),
    Route(
        name="mesh_drop",
        method="DELETE",
        path="/v1/mesh/outbox/{id}",
        scope=ADMIN,
        handler="mesh.drop",
        statuses=(204,),
        summary="Discards one of them; journaled.",
    ),
)

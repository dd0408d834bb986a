"""Routes of the mesh: a box joins a host, stays, and leaves; an operator looks and ends sessions."""

from agentbox.contracts.routes.route import Route

JOIN, SESSION, ADMIN = ("mesh:join",), ("mesh:session",), ("mesh:admin",)
_BODY = 65536  # bytes; what a box says of itself is short

MESH: tuple[Route, ...] = (
    Route(
        name="mesh_register", method="POST", path="/v1/register", scope=JOIN, handler="mesh.register", request="Registration",
        response="Registered", body_limit=_BODY,
        summary="A box joins this host: a session with its token, and where the slots are. May be repeated.",
    ),
    Route(
        name="mesh_heartbeat", method="POST", path="/v1/heartbeat", scope=SESSION, handler="mesh.heartbeat", request="Beat",
        response="BeatAnswer", statuses=(200, 410), body_limit=_BODY,
        summary="Renews the lease of the session whose token is sent; 410 with the reason once it is over.",
    ),
    Route(
        name="mesh_deregister", method="POST", path="/v1/deregister", scope=SESSION, handler="mesh.deregister",
        request="Leaving", response="Left", body_limit=_BODY, summary="Ends the session whose token is sent; may be repeated.",
    ),
    Route(
        name="mesh_sessions", method="GET", path="/v1/mesh/sessions", scope=ADMIN, handler="mesh.list_sessions",
        response="Page[MeshSession]", query=("state", "instance", "image", "limit", "cursor"),
        summary="Sessions that this host keeps or kept, in order of id.",
    ),
    Route(
        name="mesh_session", method="GET", path="/v1/mesh/sessions/{id}", scope=ADMIN, handler="mesh.show_session",
        response="MeshSession", summary="One session.",
    ),
    Route(
        name="mesh_evict", method="DELETE", path="/v1/mesh/sessions/{id}", scope=ADMIN, handler="mesh.evict", statuses=(204,),
        summary="Ends a session and its token at once; the box may join again.",
    ),
    Route(
        name="mesh_status", method="GET", path="/v1/mesh/status", scope=ADMIN, handler="mesh.status", response="MeshStatus",
        summary="This box's own part: its mode, and the state of a client or the sessions of a host.",
    ),
    Route(
        name="mesh_join", method="POST", path="/v1/mesh/join", scope=ADMIN, handler="mesh.join", response="MeshStatus",
        statuses=(202,), summary="A client that was refused, or waits, asks its host again now.",
    ),
    Route(
        name="mesh_outbox", method="GET", path="/v1/mesh/outbox", scope=ADMIN, handler="mesh.outbox", response="OutboxItems",
        summary="Results that wait for the store of beads, the oldest first.",
    ),
    Route(
        name="mesh_drop", method="DELETE", path="/v1/mesh/outbox/{id}", scope=ADMIN, handler="mesh.drop", statuses=(204,),
        summary="Gives up one of them; journaled.",
    ),
)  # fmt: skip

"""Routes of the slot pods: objects at a path, containers at a path that ends with `/` (RFC 9110,
LDP 1.0).
"""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("pods:read",), ("pods:write",)
PATH = "/v1/pods/{path*}"
_CONDITIONS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
_ON_CHANGE = ("If-Match", "If-Unmodified-Since")

PODS: tuple[Route, ...] = (
    Route(
        name="write_pod",
        method="PUT",
        path=PATH,
        scope=WRITE,
        handler="pods.write",
        request="Body",
        statuses=(201, 204),
        body_limit=None,
        headers=("If-Match", "If-None-Match", "If-Unmodified-Since"),
        media="any",
        summary="Stores an object of any type, streamed, of at most `adapters.pods.max_object`; "
        "parents are made.",
    ),
    Route(
        name="patch_pod",
        method="PATCH",
        path=PATH,
        scope=WRITE,
        handler="pods.patch",
        request="JsonPatch",
        statuses=(204,),
        body_limit=None,
        headers=_ON_CHANGE,
        media="any",
        summary="Applies a JSON Patch (RFC 6902), all or nothing.",
    ),
    Route(
        name="delete_pod",
        method="DELETE",
        path=PATH,
        scope=WRITE,
        handler="pods.delete",
        statuses=(204,),
        headers=_ON_CHANGE,
        media="any",
        summary="Removes an object, or an empty container.",
    ),
    Route(
        name="read_pod",
        method="GET",
        path=PATH,
        scope=READ,
        handler="pods.read",
        response="Body",
        statuses=(200, 206, 304, 412, 416),
        query=("limit", "cursor"),
        headers=(*_CONDITIONS, "Range", "If-Range"),
        media="any",
        summary="An object, or a part of it; the members of a container as Turtle, JSON-LD or "
        "JSON, by Accept.",
    ),
    Route(
        name="options_pod",
        method="OPTIONS",
        path=PATH,
        scope=READ,
        handler="pods.options",
        statuses=(204,),
        media="any",
        summary="Supported methods and types: Allow, Accept-Put, Accept-Patch.",
    ),
)

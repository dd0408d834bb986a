"""Operations of the slot pods: objects at a path, containers at a path that ends with `/` (RFC
9110, LDP 1.0). The endpoint of `read` also lists containers and answers HEAD.
"""

from functools import partial

from agentbox.contracts.arguments import Cursor, PageSize
from agentbox.contracts.pods import PodEndpoints, Pods
from agentbox.contracts.routes import operation
from agentbox.contracts.routes.operation import WITHOUT_TOOL, RequestMember
from agentbox.contracts.routes.resource import Resource

_PATH = "/v1/pods/{path*}"
_CONDITIONS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
# The part of a container's members that a reader asks for.
MEMBERS = (
    RequestMember(name="limit", annotation=PageSize, required=False, default=100),
    RequestMember(name="cursor", annotation=Cursor, required=False),
)
_read = partial(operation.read, deadline_s=30)
_write = partial(
    operation.write,
    deadline_s=30,
    audit=True,
    headers=("If-Unmodified-Since",),
    media="any",
    response="",
    agent=WITHOUT_TOOL,
)

PODS = Resource(
    "pods",
    Pods,
    operations=(
        _write(
            "write",
            f"PUT {_PATH}",
            "Stores an object of any type, streamed, of at most `adapters.pods.max_object`; "
            "parents are made.",
            route="write_pod",
            body="Body",
            statuses=(201, 204),
            redact=("/body",),
            identifiers=("/path", "/content_type"),
        ),
        _write(
            "patch",
            f"PATCH {_PATH}",
            "Applies a JSON Patch (RFC 6902), all or nothing.",
            route="patch_pod",
            body="JsonPatch",
            statuses=(204,),
            redact=("/patch/*/value/**",),
            identifiers=("/path", "/patch/*/path"),
        ),
        _write(
            "delete",
            f"DELETE {_PATH}",
            "Removes an object, or an empty container.",
            route="delete_pod",
            statuses=(204,),
        ),
        _read(
            "read",
            f"GET {_PATH}",
            "An object, or a part of it; the members of a container as Turtle, JSON-LD or "
            "JSON, by Accept.",
            route="read_pod",
            statuses=(200, 206, 304, 412, 416),
            headers=(*_CONDITIONS, "Range", "If-Range"),
            extra=MEMBERS,
            response="Body",
            media="any",
            agent=WITHOUT_TOOL,
        ),
        _read("head"),
        _read("list"),
    ),
)
POD_ENDPOINTS = Resource(
    "pods",
    PodEndpoints,
    operations=(
        operation.read(
            "options",
            f"OPTIONS {_PATH}",
            "Supported methods and types: Allow, Accept-Put, Accept-Patch.",
            route="options_pod",
            statuses=(204,),
            media="any",
            agent=WITHOUT_TOOL,
        ),
    ),
)
RESOURCES = (PODS, POD_ENDPOINTS)

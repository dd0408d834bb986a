"""Operations of the box itself: probes, drain, apply, boot record, HTML pages."""

from functools import partial

from agentbox.contracts.box import BoxEndpoints, PageEndpoints, ProbeEndpoints
from agentbox.contracts.routes import operation
from agentbox.contracts.routes.operation import write
from agentbox.contracts.routes.resource import Resource

_public = partial(operation.read, scope=())

PROBES = Resource(
    "probes",
    ProbeEndpoints,
    operations=(
        _public("livez", "GET /livez", "The process answers. No check, no lock, no I/O."),
        _public(
            "ready",
            "GET /ready",
            "Readiness, with the missing requirements.",
            statuses=(200, 503),
        ),
        _public("health", "GET /health", "The state of each part, for people."),
        _public("meta", "GET /v1/meta", "Identity of this box: digests, slots, boot."),
        _public(
            "metrics",
            "GET /metrics",
            "Prometheus text 0.0.4, or OpenMetrics by Accept. Served alone on its own port.",
            response="text",
            listener="metrics",
        ),
    ),
)
BOX = Resource(
    "box",
    BoxEndpoints,
    operations=(
        _public("openapi", "GET /openapi.json", "This table as OpenAPI 3.1.", response="object"),
        operation.read(
            "boot",
            "GET /v1/boot",
            "Record, phases, events and sentinel of this boot; the timeline of it or of "
            "`boot_id`; all stored boots.",
            scope=("events:read",),
        ),
        write(
            "drain",
            "POST /v1/drain",
            "Marks the box unready, ends its agents, closes its slots, marks the shutdown clean.",
            scope=("admin",),
            statuses=(202,),
        ),
        write(
            "apply",
            "POST /v1/config/apply",
            "Reads the mounted manifest again and applies its live keys; changes nothing if "
            "a key of another class has changed.",
            route="config_apply",
            scope=("admin",),
            statuses=(200, 409),
            deadline_s=60,
        ),
    ),
)
# They contain no data of the box; they request it from the API, with a token.
PAGES = Resource(
    "pages",
    PageEndpoints,
    operations=(
        _public(
            "serve",
            "GET /ui/{name}",
            "A page, or its script or style.",
            route="page",
            response="Body",
            media="any",
        ),
    ),
)
RESOURCES = (PROBES, BOX)

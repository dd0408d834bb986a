"""Routes of the box itself: probes, drain, apply, boot record."""

from agentbox.contracts.routes.route import Route

BOX: tuple[Route, ...] = (
    Route(
        name="livez", method="GET", path="/livez", scope=(), handler="probes.livez", response="Live",
        summary="The process answers. No check, no lock, no I/O.",
    ),
    Route(
        name="ready", method="GET", path="/ready", scope=(), handler="probes.ready", response="Ready",
        statuses=(200, 503), summary="Whether every requirement holds, or which do not.",
    ),
    Route(
        name="health", method="GET", path="/health", scope=(), handler="probes.health", response="HealthReport",
        summary="The state of each part, for people.",
    ),
    Route(
        name="meta", method="GET", path="/v1/meta", scope=(), handler="probes.meta", response="Meta",
        summary="What this box is: digests, slots, boot.",
    ),
    Route(
        name="metrics", method="GET", path="/metrics", scope=(), handler="probes.metrics", response="text",
        listener="metrics", summary="Prometheus text 0.0.4, or OpenMetrics by Accept. On its own port, and alone there.",
    ),
    Route(
        name="openapi", method="GET", path="/openapi.json", scope=(), handler="box.openapi", response="object",
        summary="This table as OpenAPI 3.1.",
    ),
    Route(
        name="boot", method="GET", path="/v1/boot", scope=("events:read",), handler="box.boot", response="BootReport",
        query=("boot_id",),
        summary="Record, phases, events and sentinel of this boot; the time line of it or of `boot_id`; every kept boot.",
    ),
    Route(
        name="drain", method="POST", path="/v1/drain", scope=("admin",), handler="box.drain", response="Draining",
        statuses=(202,), summary="Un-readies the box, ends its agents, closes its slots, marks the shutdown clean.",
    ),
    Route(
        name="config_apply", method="POST", path="/v1/config/apply", scope=("admin",), handler="box.apply",
        response="Applied", statuses=(200, 409),
        summary="Reads the mounted manifest again and applies its live keys; changes nothing when a key needs more.",
    ),
)  # fmt: skip

"""[mesh]: standalone, client, or host."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import BoxPath, Digest, Env, HttpUrl


@frozen
class MeshTable:
    """How this box takes part in a federation."""

    mode: Literal["standalone", "client", "host"] = key(
        "standalone",
        "boot",
        doc="client registers with a host; host accepts registrations on its API port.",
    )
    host_url: HttpUrl = key("", "boot", doc="The host.", when={".mode": "client"})
    token_env: Env = key(
        "AGENTBOX_MESH_TOKEN",
        "recreate",
        doc="Variable of the enrolment token, both sides. Writing `token_file` clears the default.",
        when={".mode": ("client", "host")},
    )
    token_file: BoxPath = key(
        "",
        "recreate",
        doc="File of the enrolment token, both sides.",
        when={".mode": ("client", "host")},
    )
    heartbeat_seconds: Annotated[int, Range(5, 3600)] = key(
        30,
        "boot",
        doc="client: interval; host: interval it demands.",
        when={".mode": ("client", "host")},
    )
    connect_timeout_seconds: Annotated[int, Range(1, 60)] = key(
        10, "boot", doc="Connecting to the host and to each external slot."
    )
    ca_file: BoxPath = key(
        "", "boot", doc="Extra trust anchor for the host.", when={".mode": "client"}
    )
    admit_images: Annotated[tuple[Digest, ...], Unique()] = key(
        (),
        "live",
        doc="Image digests that this host admits; [] = not checked.",
        when={".mode": "host"},
    )
    admit_postures: Annotated[tuple[Digest, ...], Unique()] = key(
        (),
        "live",
        doc="Posture digests that this host admits; [] = not checked.",
        when={".mode": "host"},
    )
    missed_heartbeats_before_eviction: Annotated[int, Range(1, 100)] = key(
        3, "boot", doc="Missed heartbeats after which a client is evicted.", when={".mode": "host"}
    )
    max_clients: Annotated[int, Range(1, 10000)] = key(
        64, "live", doc="Clients that this host admits.", when={".mode": "host"}
    )

"""[mesh]: standalone, client, or host."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import BoxPath, Digest, Env, HttpUrl, Range, Unique, key


@dataclass(frozen=True, kw_only=True)
class MeshTable:
    """The role of this box in a federation. Setting `token_file` clears the default of
    `token_env`.
    """

    mode: Literal["standalone", "client", "host"] = key("standalone", "boot")
    host_url: HttpUrl = key("", "boot")
    token_env: Env = key("AGENTBOX_MESH_TOKEN", "recreate")
    token_file: BoxPath = key("", "recreate")
    heartbeat_seconds: Annotated[int, Range(5, 3600)] = key(30, "boot")
    connect_timeout_seconds: Annotated[int, Range(1, 60)] = key(10, "boot")
    ca_file: BoxPath = key("", "boot")
    admit_images: Annotated[tuple[Digest, ...], Unique()] = key((), "live")
    admit_postures: Annotated[tuple[Digest, ...], Unique()] = key((), "live")
    missed_heartbeats_before_eviction: Annotated[int, Range(1, 100)] = key(3, "boot")
    max_clients: Annotated[int, Range(1, 10000)] = key(64, "live")

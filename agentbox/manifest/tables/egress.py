"""[egress]: the maximum that leaves the box through the proxy."""

from dataclasses import dataclass
from typing import Annotated

from agentbox.manifest.types import Range, TypeName, Unique, key


@dataclass(frozen=True, kw_only=True)
class EgressTable:
    """The maximum of hosts that agents may reach. Private ranges are blocked after resolution
    unless exempt.
    """

    allow: Annotated[tuple[Annotated[str, TypeName("net_pattern")], ...], Unique()] = key(
        (), "live"
    )
    allow_private: Annotated[tuple[Annotated[str, TypeName("net_target")], ...], Unique()] = key(
        (), "live"
    )
    connect_timeout_seconds: Annotated[int, Range(1, 120)] = key(10, "live")
    max_connections: Annotated[int, Range(1, 1024)] = key(64, "live")

"""[egress]: the maximum that leaves the box through the proxy."""

from typing import Annotated

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import NetPattern, NetTarget


@frozen
class EgressTable:
    """The maximum that leaves the box through the proxy. The proxy blocks private ranges after
    resolution, even if `allow` includes them.
    """

    allow: Annotated[tuple[NetPattern, ...], Unique()] = key(
        (),
        "live",
        doc="Ceiling for every agent that is not unrestricted, and $EGRESS; [] = nothing leaves.",
    )
    allow_private: Annotated[tuple[NetTarget, ...], Unique()] = key(
        (), "live", doc="Exempt from the private-range refusal."
    )
    connect_timeout_seconds: Annotated[int, Range(1, 120)] = key(10, "live", doc="One connection.")
    max_connections: Annotated[int, Range(1, 1024)] = key(
        64, "live", doc="Connections of one agent.", unit="connections"
    )

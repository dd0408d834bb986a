"""[observability]: metrics, traces, logs."""

from typing import Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import HttpUrl, IpLiteral, Port


@frozen
class ObservabilityTable:
    """What the box tells of itself."""

    metrics_port: Port = key(
        9091,
        "rebuild",
        doc="Port of the Prometheus listener; compose, container, image config and "
        "/v1/meta show this one port.",
    )
    publish_address: IpLiteral = key(
        "127.0.0.1", "recreate", doc="Host address that the port is published on."
    )
    otlp_endpoint: HttpUrl = key(
        "", "recreate", doc='Where traces are exported to, over OTLP; "" = off.'
    )
    log_level: Literal["trace", "debug", "info", "warn", "error"] = key(
        "info", "recreate", doc="Lowest level written."
    )

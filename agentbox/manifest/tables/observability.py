"""[observability]: metrics, traces, logs."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.types import HttpUrl, IpLiteral, Port, key


@dataclass(frozen=True, kw_only=True)
class ObservabilityTable:
    """Metrics, traces and logs of the box."""

    metrics_port: Port = key(9091, "rebuild")
    publish_address: IpLiteral = key("127.0.0.1", "recreate")
    otlp_endpoint: HttpUrl = key("", "recreate")
    log_level: Literal["trace", "debug", "info", "warn", "error"] = key("info", "recreate")

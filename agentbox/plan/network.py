"""Ports of the box, and the readiness check used by engines."""

import ipaddress
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from agentbox.manifest.gateway_port import GATEWAY_PORT
from agentbox.plan.errors import PlanError
from agentbox.plan.model import ApiPlan, ObservabilityPlan, Plan, Port, SlotPlan
from agentbox.plan.names import GATEWAY

LOOPBACK = "127.0.0.1"
_LOOPBACKS = tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "::1/128", "::ffff:127.0.0.0/104")))
_ABOVE_API = 3


@dataclass(frozen=True)
class Healthcheck:
    """As in OCI image configs and compose; times in seconds."""

    argv: tuple[str, ...]
    interval: int = 10
    timeout: int = 5
    retries: int = 3
    start_period: int = 30


def control_plane_ports(
    api: ApiPlan, observability: ObservabilityPlan, slots: Mapping[str, SlotPlan]
) -> tuple[Port, ...]:
    """The two ports of every box, and the gateway's if agents are possible, which is not
    published.
    """
    gateway = (
        ()
        if slots["orchestrator"].use == "off"
        else (Port(owner=GATEWAY, name=GATEWAY, port=GATEWAY_PORT),)
    )
    return (
        Port(owner="api.port", name="api", port=api.port, publish=api.publish_address),
        Port(
            owner="observability.metrics_port",
            name="metrics",
            port=observability.metrics_port,
            publish=observability.publish_address,
        ),
        *gateway,
    )


def gateway_port(plan: Plan, *, in_container: bool) -> int:
    """The loopback port of the gateway. Boxes of the process engine share their host's loopback:
    there it is the first unused port from three above the API's, hence 9093 for the default API
    port.
    """
    if in_container:
        return GATEWAY_PORT
    used = {row.port for row in plan.ports if row.owner != GATEWAY}
    base = plan.api.port + _ABOVE_API
    return next(
        port for port in itertools.chain(range(base, 65536), range(1024, base)) if port not in used
    )


def ready_url(plan: Plan) -> str:
    """The URL of `/ready` inside the box."""
    return f"http://{LOOPBACK}:{plan.api.port}/ready"


def healthcheck(plan: Plan) -> Healthcheck:
    """Silent, no shell, fails for status 400 and above."""
    argv = ("/usr/bin/curl", "-fsS", "-o", "/dev/null", "--max-time", "3", ready_url(plan))
    return Healthcheck(argv)


def loopback_targets(plan: Plan) -> tuple[int, ...]:
    """Ports of services on loopback that the manifest names. While such a service is down, any
    other listener on its port would get its data. The address of a database is a secret, so its
    port is included.
    """
    databases = {
        f"adapters.{name}" for name, slot in plan.slots.items() if slot.use == "external-pg"
    }
    rows = (row for row in plan.egress if row.port and row.private)
    return tuple(
        sorted({row.port for row in rows if row.owner in databases or _includes_loopback(row.host)})
    )


def _includes_loopback(host: str) -> bool:
    network = ipaddress.ip_network(host) if host else None
    return network is not None and any(
        network.version == loopback.version and network.overlaps(loopback)
        for loopback in _LOOPBACKS
    )


def check_ports(ports: tuple[Port, ...]) -> None:
    """Raises PlanError if two owners use one port."""
    owners: dict[int, str] = {}
    for row in ports:
        first = owners.setdefault(row.port, row.owner)
        if first != row.owner:
            raise PlanError(
                f"cannot plan port {row.port}: {first} and {row.owner} both use it",
                "give one of them another port",
            )

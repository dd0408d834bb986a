"""What the box listens on, and the question by which an engine learns that it is ready."""

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
    """In the terms of OCI image configs and of compose; times in seconds."""

    argv: tuple[str, ...]
    interval: int = 10
    timeout: int = 5
    retries: int = 3
    start_period: int = 30


def control_plane_ports(
    api: ApiPlan, observability: ObservabilityPlan, slots: Mapping[str, SlotPlan]
) -> tuple[Port, ...]:
    """The two ports that every box has, and the gateway's where there may be agents; that one stays inside."""
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
    """Where the gateway listens on loopback. Boxes of the process engine share the loopback of their host: there it is
    the first port from three above the API's that nothing of the plan has, hence 9093 again for the default API port."""
    if in_container:
        return GATEWAY_PORT
    used = {row.port for row in plan.ports if row.owner != GATEWAY}
    base = plan.api.port + _ABOVE_API
    return next(
        port for port in itertools.chain(range(base, 65536), range(1024, base)) if port not in used
    )


def ready_url(plan: Plan) -> str:
    """`/ready` as a program inside the box asks for it."""
    return f"http://{LOOPBACK}:{plan.api.port}/ready"


def healthcheck(plan: Plan) -> Healthcheck:
    """Silent, no shell, fails on any status from 400."""
    argv = ("/usr/bin/curl", "-fsS", "-o", "/dev/null", "--max-time", "3", ready_url(plan))
    return Healthcheck(argv)


def loopback_targets(plan: Plan) -> tuple[int, ...]:
    """Ports of services beside the box that the manifest names on loopback. While one is down, whoever listened there would
    be sent what is meant for it. The address of a database is a secret, so it may be one of them."""
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
    """Raises PlanError when two owners want one port."""
    owners: dict[int, str] = {}
    for row in ports:
        first = owners.setdefault(row.port, row.owner)
        if first != row.owner:
            raise PlanError(
                f"cannot plan port {row.port}: {first} and {row.owner} both want it",
                "give one of them another port",
            )

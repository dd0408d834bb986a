"""What the box listens on, and the question by which an engine learns that it is ready."""

from dataclasses import dataclass

from agentbox.plan.errors import PlanError
from agentbox.plan.model import Api, Observability, Plan, Port

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Healthcheck:
    """In the terms of OCI image configs and of compose; times in seconds."""

    argv: tuple[str, ...]
    interval: int = 10
    timeout: int = 5
    retries: int = 3
    start_period: int = 30


def own_ports(api: Api, observability: Observability) -> tuple[Port, ...]:
    """The two ports that every box has."""
    return (
        Port(owner="api.port", name="api", port=api.port, publish=api.publish_address),
        Port(
            owner="observability.metrics_port",
            name="metrics",
            port=observability.metrics_port,
            publish=observability.publish_address,
        ),
    )


def ready_url(plan: Plan) -> str:
    """`/ready` as a program inside the box asks for it."""
    return f"http://{LOOPBACK}:{plan.api.port}/ready"


def healthcheck(plan: Plan) -> Healthcheck:
    """Silent, no shell, fails on any status from 400."""
    argv = ("/usr/bin/curl", "-fsS", "-o", "/dev/null", "--max-time", "3", ready_url(plan))
    return Healthcheck(argv)


def check_ports(ports: tuple[Port, ...]) -> None:
    """Raises PlanError when two owners want one port."""
    owners: dict[int, str] = {}
    for row in ports:
        first = owners.setdefault(row.port, row.owner)
        if first != row.owner:
            raise PlanError(
                f"cannot plan port {row.port}: {first} and {row.owner} both want it", "give one of them another port"
            )

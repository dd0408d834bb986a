"""Published ports: free, or used by the box itself."""

from collections.abc import Iterator

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines import ports

NAME = "ports"
TITLE = "published ports"


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    candidates = ports.host_ports(host.plan) if host.engine.name == "process" else host.plan.ports
    box_ports = {port.port for port in candidates} if host.running else set[int]()
    for port in (port for port in candidates if port.publish):
        address = f"{port.publish}:{port.port} ({port.owner})"
        try:
            ports.require_free_ports([port], box_ports, find_container=_container_namer(host))
        except AgentboxError as error:
            yield CheckResult(
                check=NAME,
                subject=str(port.port),
                state="bad",
                message=error.message,
                advice=error.hint,
            )
        else:
            yield CheckResult(
                check=NAME,
                subject=str(port.port),
                state="good",
                message=f"{address} is {'this box' if box_ports else 'free'}",
            )


def _container_namer(host: CheckContext) -> ports.ContainerLookup:
    return ports.publishing_container if host.daemon.state == "answers" else lambda _port: ""

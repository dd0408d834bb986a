"""The ports that the box publishes: free, or its own."""

from collections.abc import Iterator

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.host.engines import ports

NAME = "ports"
TITLE = "the ports that the box publishes"


def look(host: Host) -> Iterator[Row]:
    rows = ports.on_host(host.plan) if host.engine.name == "process" else host.plan.ports
    ours = {port.port for port in rows} if host.running else set[int]()
    for port in (port for port in rows if port.publish):
        where = f"{port.publish}:{port.port} ({port.owner})"
        try:
            ports.refuse_taken([port], ours, container_at=_container(host))
        except AgentboxError as error:
            yield Row(check=NAME, subject=str(port.port), state="bad", said=error.message, advice=error.hint)
        else:
            yield Row(check=NAME, subject=str(port.port), state="good", said=f"{where} is {'this box' if ours else 'free'}")  # fmt: skip


def _container(host: Host) -> ports.Namer:
    return ports.docker_publishes if host.daemon.state == "answers" else lambda _port: ""

"""Whether the published ports of a box are free on this host, and if not, who uses them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.host.engines.command import succeeds
from agentbox.plan.names import GATEWAY

if TYPE_CHECKING:
    from agentbox.plan.model import Plan, Port

_LISTEN = "0A"  # TCP_LISTEN, fourth column of /proc/net/tcp
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ContainerLookup = Callable[[int], str]


def require_free_ports(
    requested_ports: Iterable[Port],
    box_ports: Collection[int] = (),
    *,
    find_container: ContainerLookup = lambda _port: "",
) -> None:
    """Raises AgentboxError (exit 7) with the owner of a port that the box wants to publish.

    `box_ports` are in use by this box. `find_container` returns the container that publishes a
    port, or "".
    """
    for port in requested_ports:
        if not port.publish or port.port in box_ports or _is_free(port):
            continue
        owner = find_container(port.port) or _listening_process(port.port) or "another program"
        raise port_taken_error(
            f"{port.owner} = {port.port}", owner, follows_api=port.owner == GATEWAY
        )


def host_ports(plan: Plan) -> tuple[Port, ...]:
    """Return the ports of a box without its own network, including the gateway, whose port follows
    that of the API.
    """
    from agentbox.plan.network import (
        LOOPBACK,
        gateway_port,
    )  # reads the features, which only starting a box needs

    port = gateway_port(plan, in_container=False)
    return tuple(
        replace(row, port=port, publish=LOOPBACK) if row.owner == GATEWAY else row
        for row in plan.ports
    )


def port_taken_error(setting: str, owner: str, *, follows_api: bool = False) -> AgentboxError:
    """Return the error for a port that is in use."""
    key = "another api.port" if follows_api else "another port"
    return AgentboxError(
        f"cannot publish {setting}: {owner} listens on that port",
        f"Stop it, or give this box {key} in the manifest.",
        exit_code=ExitCode.BUSY,
    )


def _is_free(port: Port) -> bool:
    """Binds as the engine would. An address that this host lacks is left to the engine."""
    family = socket.AF_INET6 if ":" in port.publish else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((port.publish, port.port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def listeners(port: int) -> Iterator[int]:
    """Yield pids of processes that listen on a TCP port, as far as this user may see them."""
    inodes = {
        f"socket:[{row[9]}]"
        for row in _rows()
        if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port
    }
    for entry in Path("/proc").glob("[0-9]*") if inodes else ():
        try:
            if any(str(link.readlink()) in inodes for link in (entry / "fd").iterdir()):
                yield int(entry.name)
        except OSError:
            continue  # ended, or another user's


def _rows() -> Iterator[list[str]]:
    for table in _TABLES:
        if table.exists():
            yield from (line.split() for line in table.read_text().splitlines()[1:])


def _listening_process(port: int) -> str:
    return next((_describe_process(pid) for pid in listeners(port)), "")


def _describe_process(pid: int) -> str:
    """Return `process 12 (python3 -m http.server)`, with its box if it belongs to one."""
    directory = Path(f"/proc/{pid}")
    try:
        arguments = directory.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        prefixes = [
            entry
            for entry in directory.joinpath("environ").read_bytes().split(b"\0")
            if entry.startswith(PREFIX_VARIABLE.encode())
        ]
    except OSError:
        return f"process {pid}"
    command = b" ".join(arguments).decode(errors="replace")[:60]
    box = (
        f"the box below {prefixes[0].partition(b'=')[2].decode(errors='replace')}, "
        if prefixes
        else ""
    )
    return f"{box}process {pid} ({command})"


def publishing_container(port: int) -> str:
    """Return the container that publishes a port, and its box, according to the docker client."""
    from agentbox.host.engines.command import run

    if not succeeds(["docker", "version"]):
        return ""
    row = '{{.Names}}\t{{.Label "org.agentbox.plan-digest"}}'
    lines = run(
        ["docker", "ps", "--filter", f"publish={port}", "--format", row], doing="list containers"
    ).splitlines()
    name, _, plan = lines[0].partition("\t") if lines else ("", "", "")
    return f"the box {name} (docker)" if plan else f"the container {name} (docker)" if name else ""

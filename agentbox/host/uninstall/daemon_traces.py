"""Stops the dockerd that agentbox started and undoes what it changed in the network."""

from __future__ import annotations

import fcntl
import re
import shlex
import socket
import struct
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.command import run, succeeds
from agentbox.host.engines.docker import daemon

_OF_DOCKER: Final = re.compile(r"\bDOCKER\b|\bDOCKER-|\bdocker0\b|\bbr-[0-9a-f]{12}\b")
# Where docker makes rules beside its own chains; an operator's rule of INPUT may name docker0.
_IN_CHAIN: Final = re.compile(r"-A (FORWARD|PREROUTING|POSTROUTING|OUTPUT|DOCKER\S*) ")
_OF_OPERATOR: Final = re.compile(r"-A DOCKER-USER (?!-j RETURN$)")
FAMILIES: Final = ("iptables", "ip6tables")
POLICIES: Final = ("ACCEPT", "DROP")
_SET_BY_DOCKER: Final = "1"
_SET_FLAGS, _DELETE_BRIDGE = 0x8914, 0x89A1  # SIOCSIFFLAGS, SIOCBRDELBR of linux/sockios.h
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")


def stop_daemon(state_root: Path) -> None:
    """Stops the dockerd that agentbox started, also one whose record was lost. Raises
    AgentboxError (exit 6)."""
    if not daemon.stop(state_root):
        for pid in daemon.started_by(state_root):
            daemon.terminate(pid, state_root)


def restore_packet_filter(noted: str) -> None:
    """Removes docker's rules and chains of one family, one by one; other rules stay. `noted`:
    `iptables ACCEPT`, the policy of FORWARD before. Raises AgentboxError (exit 6)."""
    family, _, policy = noted.rpartition(" ")
    family = family or "iptables"
    if family not in FAMILIES or policy not in POLICIES or not succeeds([family, "--version"]):
        return
    saved = run([f"{family}-save"], doing="list the packet filter")
    for command in removal_commands(saved, policy):
        run([family, "--wait", *command], doing="remove docker's rules of the packet filter")


def removal_commands(saved: str, policy: str) -> list[list[str]]:
    """The arguments of iptables that undo docker's changes in the output of iptables-save. The
    policy is changed only if it is the one that docker set. A chain DOCKER-USER with rules of the
    operator stays, with the rule that leads to it.
    """
    rules: list[list[str]] = []
    chains: list[list[str]] = []
    table = ""
    operators = any(_OF_OPERATOR.match(line) for line in saved.splitlines())
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif (
            table == "filter"
            and line.startswith(":FORWARD DROP")
            and _OF_DOCKER.search(saved)
            and policy != "DROP"
        ):
            chains.append(["-t", table, "-P", "FORWARD", policy])
        elif operators and re.search(r"\bDOCKER-USER\b", line):
            continue
        elif line.startswith(":DOCKER"):
            name = line[1:].split()[0]
            chains += [["-t", table, "-F", name], ["-t", table, "-X", name]]
        elif _IN_CHAIN.match(line) and _OF_DOCKER.search(line):
            rules.append(["-t", table, "-D", *shlex.split(line)[1:]])
    flushed = sorted(chains, key=lambda command: command[2] == "-X")  # rules lead to other chains
    return [*rules, *flushed]


def remove_interface(name: str) -> None:
    """Removes a bridge. Raises AgentboxError (exit 6)."""
    if name not in {interface for _index, interface in socket.if_nameindex()}:
        return
    request = struct.pack("16sH14x", name.encode(), 0)  # struct ifreq: name and flags, none set
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, _SET_FLAGS, request)
            fcntl.ioctl(control, _DELETE_BRIDGE, name.encode() + b"\0")
    except OSError as error:
        raise AgentboxError(
            f"cannot remove the network interface {name}: {error.strerror}",
            exit_code=ExitCode.PREREQUISITE,
        ) from error


def restore_forwarding(value: str) -> None:
    """Sets net.ipv4.ip_forward if it is what docker set. Raises AgentboxError (exit 3) if not
    root."""
    if value not in ("0", "1") or _FORWARDING.read_text().strip() != _SET_BY_DOCKER:
        return
    try:
        _FORWARDING.write_text(value)
    except OSError as error:
        raise AgentboxError(
            f"cannot set net.ipv4.ip_forward to {value}: {error.strerror}",
            exit_code=ExitCode.PREREQUISITE,
        ) from error

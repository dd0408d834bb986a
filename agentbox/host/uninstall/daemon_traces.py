"""Stops the dockerd that agentbox started and undoes what it changed in the network."""

from __future__ import annotations

import fcntl
import re
import socket
import struct
import subprocess
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.command import run, succeeds
from agentbox.host.engines.docker import daemon

_OF_DOCKER: Final = re.compile(r"\bDOCKER\b|\bDOCKER-|\bdocker0\b|\bbr-[0-9a-f]{12}\b")
_SET_FLAGS, _DELETE_BRIDGE = 0x8914, 0x89A1  # SIOCSIFFLAGS, SIOCBRDELBR of linux/sockios.h
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")


def stop_daemon(state_root: Path) -> None:
    """Stops the dockerd that agentbox started, also one whose record was lost. Raises
    AgentboxError (exit 6)."""
    if not daemon.stop(state_root):
        for pid in daemon.started_by(state_root):
            daemon.terminate(pid, state_root)


def restore_packet_filter(policy: str) -> None:
    """Removes docker's rules and chains of IPv4 and IPv6; the chain FORWARD gets its former
    policy. Other rules stay. Raises AgentboxError (exit 6)."""
    for family in ("iptables", "ip6tables"):
        if not succeeds([family, "--version"]):
            continue
        saved = run([f"{family}-save"], doing="list the packet filter")
        if not _OF_DOCKER.search(saved):
            continue
        _restore(f"{family}-restore", without_docker(saved, policy))


def without_docker(saved: str, policy: str) -> str:
    """The output of iptables-save without docker's rules and chains."""
    lines = [line for line in saved.splitlines() if not _OF_DOCKER.search(line)]
    return "".join(re.sub(r"^:FORWARD \S+", f":FORWARD {policy}", line) + "\n" for line in lines)


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
    """Sets net.ipv4.ip_forward. Raises AgentboxError (exit 3) if not root."""
    try:
        _FORWARDING.write_text(value)
    except OSError as error:
        raise AgentboxError(
            f"cannot set net.ipv4.ip_forward to {value}: {error.strerror}",
            exit_code=ExitCode.PREREQUISITE,
        ) from error


def _restore(program: str, text: str) -> None:
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AgentboxError(
            f"cannot remove docker's rules of the packet filter: {done.stderr.strip()}",
            exit_code=ExitCode.ENGINE,
        )

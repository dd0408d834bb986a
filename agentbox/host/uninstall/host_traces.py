"""What Debian packages and a dockerd leave on a host beside their own files; noted before they are
installed or started, if it is not there yet.
"""

from __future__ import annotations

import grp
import pwd
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentbox.core.paths import HostPaths
from agentbox.host.engines.command import run, succeeds
from agentbox.host.uninstall.inventory import Inventory

# Left by `apt-get purge` of the packages in Debian 12 and 13: listed by tools/list_host.sh.
_PACKAGE_DATA: Final = {
    "docker.io": (
        "/etc/docker",
        "/var/lib/docker",
        "/run/docker",
        "/run/docker.pid",
        "/run/adduser",
    ),
    "netbase": ("/etc/hosts",),
    "containerd": ("/var/lib/containerd", "/run/containerd", "/opt/containerd"),
    "nix-bin": ("/nix", "/etc/nix"),
}
GROUPS: Final = {"docker.io": ("docker",), "nix-bin": ("nixbld", "nix-users")}
USERS: Final = {"nix-bin": tuple(f"nixbld{number}" for number in range(1, 33))}
_DAEMON_DATA: Final = ("/etc/docker", "/run/docker", "/run/docker.pid", "/run/containerd")
_BRIDGE: Final = "docker0"
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")


def note_packages(inventory: Inventory, packages: Iterable[str]) -> None:
    """Notes packages that are about to be installed, and what they will leave."""
    names = list(packages)
    inventory.add("package", *names)
    for name in names:
        inventory.add_absent("package-data", *map(Path, package_data().get(name, ())))
        inventory.add(
            "group", *(group for group in GROUPS.get(name, ()) if not exists("group", group))
        )
        inventory.add("user", *(user for user in USERS.get(name, ()) if not exists("user", user)))


def package_data() -> dict[str, tuple[str, ...]]:
    """By package: what its programs write and its removal leaves, also in the caller's home."""
    nix_cache = str(HostPaths.for_this_user().cache.parent / "nix")
    return {**_PACKAGE_DATA, "nix-bin": (*_PACKAGE_DATA["nix-bin"], nix_cache)}


def note_daemon(inventory: Inventory) -> None:
    """Notes what a dockerd that is about to be started will change."""
    if _BRIDGE not in {name for _index, name in socket.if_nameindex()}:
        inventory.add("interface", _BRIDGE)
        inventory.add("forwarding", _FORWARDING.read_text().strip())
        for family in ("iptables", "ip6tables"):
            if (policy := forward_policy(family)) is not None:
                inventory.add("packet-filter", f"{family} {policy}")
    inventory.add_absent("package-data", *map(Path, _DAEMON_DATA))
    inventory.add("daemon", inventory.directory)


def forward_policy(family: str) -> str | None:
    """The policy of the chain FORWARD; None if docker's rules are there, or without iptables."""
    if not succeeds([family, "--version"]):
        return "ACCEPT"  # of the kernel; iptables is installed together with docker
    rules = run([family, "-S"], doing="list the packet filter")
    if "DOCKER" in rules:
        return None
    return "DROP" if "-P FORWARD DROP" in rules else "ACCEPT"


def exists(kind: str, name: str) -> bool:
    """True if this host has the user or the group."""
    if kind == "group":
        return any(row.gr_name == name for row in grp.getgrall())
    return any(row.pw_name == name for row in pwd.getpwall())

"""The steps that remove Debian packages, and what they left beside their own files."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.host.engines.command import run
from agentbox.host.uninstall import debian_packages, host_traces
from agentbox.host.uninstall.docker_answer import UNKNOWN
from agentbox.host.uninstall.files import remove, size_of
from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.removal import Kept, Removal

_OF_DOCKER: Final = frozenset({"docker.io", "docker-cli", "containerd"})
_OF_NIX: Final = frozenset({"nix-bin"})
_BIN: Final = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/snap/bin")
_PROGRAMS: Final = {  # that use the data of the package, whoever installed them
    "docker.io": tuple(f"{directory}/dockerd" for directory in _BIN),
    "containerd": tuple(f"{directory}/containerd" for directory in _BIN),
    "nix-bin": (
        *(f"{directory}/nix-store" for directory in _BIN),
        "/nix/var/nix/profiles/default/bin/nix-store",
    ),
}
_GIVE_PACKAGES: Final = "give --packages"


def package_removals(
    inventory: Inventory,
    checkouts: Iterable[str],
    *,
    wanted: bool,
    docker_users: Sequence[str],
    nix_users: Sequence[str],
) -> tuple[list[Removal], list[Kept], list[str]]:
    """Return the steps, the packages that stay, and the packages that Python needs, which a shell
    removes last. What a package left is removed only together with it.
    """
    bootstrap = debian_packages.bootstrap_packages(checkouts)
    noted = {*inventory.names("package"), *bootstrap}
    sizes = debian_packages.installed_sizes(noted)
    docker_users = [*docker_users, *foreign_programs(_PROGRAMS["docker.io"], sizes)]
    nix_users = [*nix_users, *foreign_programs(_PROGRAMS["nix-bin"], sizes)]
    kept = [*_needed(sizes, _OF_DOCKER, docker_users), *_needed(sizes, _OF_NIX, nix_users)]
    if not wanted:
        kept = [
            Kept(kind="package", name=name, size=size, reason=_GIVE_PACKAGES)
            for name, size in sizes.items()
        ]
        return [], kept, []
    unneeded = debian_packages.unneeded(sizes.keys() - {row.name for row in kept})
    stays = sizes.keys() - set(unneeded) - {row.name for row in kept}
    kept += [
        Kept(kind="package", name=name, size=sizes[name], reason="other packages need it")
        for name in sorted(stays)
    ]
    first = [name for name in unneeded if name not in bootstrap]
    removals = [
        Removal(
            kind="packages",
            name=", ".join(first),
            size=sum(sizes[name] for name in first),
            remove=partial(debian_packages.purge, first),
            items=tuple(Item("package", name) for name in first),
        )
    ]
    # Also of a package that is not here any more: another one may use its directories and groups.
    used = {row.name for row in kept}
    used |= (_OF_DOCKER if docker_users else frozenset()) | (_OF_NIX if nix_users else frozenset())
    used |= {name for name in _PROGRAMS if foreign_programs(_PROGRAMS[name], sizes)}
    return (
        [*(removals if first else []), *_trace_removals(inventory, used)],
        [*kept, *_kept_traces(inventory, used)],
        [name for name in unneeded if name in bootstrap],
    )


def _needed(sizes: dict[str, int], names: frozenset[str], users: Sequence[str]) -> list[Kept]:
    """The packages of these names, if somebody uses what they run."""
    if not users:
        return []
    listed = f"needed by {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}"
    reason = UNKNOWN if UNKNOWN in users else listed
    return [
        Kept(kind="package", name=name, size=sizes[name], reason=reason)
        for name in sorted(names & sizes.keys())
    ]


def foreign_programs(paths: Iterable[str], packages: Container[str]) -> list[str]:
    """Those of the programs that exist and are of none of these packages."""
    return [
        path
        for path in paths
        if Path(path).exists() and debian_packages.owner(path) not in packages
    ]


def _kept_traces(inventory: Inventory, used: set[str]) -> list[Kept]:
    noted = set(inventory.names("package-data"))
    return [
        Kept(kind="data", name=name, reason=f"somebody uses {package}")
        for package, paths in host_traces.package_data().items()
        for name in paths
        if package in used and name in noted and os.path.lexists(name)
    ]


def _trace_removals(inventory: Inventory, kept: set[str]) -> list[Removal]:
    """The directories, groups and users of packages that are not kept."""
    removals = []
    noted = set(inventory.names("package-data"))
    for package, paths in host_traces.package_data().items():
        for name in paths:
            if package not in kept and name in noted and os.path.lexists(name):
                path = Path(name)
                removals.append(
                    Removal(
                        kind="data",
                        name=name,
                        size=size_of(path),
                        remove=partial(_remove_mounted, path),
                        items=(Item("package-data", name),),
                    )
                )
    for kind, table, program in (
        ("user", host_traces.USERS, "userdel"),
        ("group", host_traces.GROUPS, "groupdel"),
    ):
        known = set(inventory.names(kind))  # type: ignore[arg-type]
        for package, names in table.items():
            removals += [
                Removal(
                    kind=kind,
                    name=name,
                    remove=partial(_remove_account, program, kind, name),
                    items=(Item(kind, name),),  # type: ignore[arg-type]
                )
                for name in names
                if package not in kept and name in known and host_traces.exists(kind, name)
            ]
    return removals


def _remove_account(program: str, kind: str, name: str) -> None:
    if host_traces.exists(kind, name):  # the package may have removed it
        run([program, name], doing=f"remove the {kind} {name}")


def _remove_mounted(path: Path) -> None:
    """Removes a directory in which a dockerd may have left mounts of namespaces."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if Path(point).is_relative_to(path):
            run(["umount", point], doing=f"unmount {point}")
    remove(path)

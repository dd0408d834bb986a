"""The steps that remove Debian packages, and what they left beside their own files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.host.engines.command import run
from agentbox.host.uninstall import debian_packages, host_traces
from agentbox.host.uninstall.files import remove, size_of
from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.removal import Kept, Removal

_OF_DOCKER: Final = frozenset({"docker.io", "docker-cli", "containerd"})
_OF_NIX: Final = frozenset({"nix-bin"})
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
    kept_names = {row.name for row in kept}
    return (
        [*(removals if first else []), *_trace_removals(inventory, kept_names)],
        kept,
        [name for name in unneeded if name in bootstrap],
    )


def _needed(sizes: dict[str, int], names: frozenset[str], users: Sequence[str]) -> list[Kept]:
    """The packages of these names, if somebody uses what they run."""
    if not users:
        return []
    reason = f"needed by {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}"
    return [
        Kept(kind="package", name=name, size=sizes[name], reason=reason)
        for name in sorted(names & sizes.keys())
    ]


def _trace_removals(inventory: Inventory, kept: set[str]) -> list[Removal]:
    """The directories, groups and users of packages that are not kept."""
    removals = []
    noted = set(inventory.names("package-data"))
    for package, paths in {**host_traces.PACKAGE_DATA, "nix-bin ": _nix_home()}.items():
        for name in paths:
            if package.strip() not in kept and name in noted and os.path.lexists(name):
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


def _nix_home() -> tuple[str, ...]:
    return tuple(map(str, host_traces.nix_home()))


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

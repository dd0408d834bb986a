"""Plans an uninstallation from the inventory: each step with its size, in the order in which they
are done.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from agentbox.core.files.atomic_text import write_atomically
from agentbox.core.paths import CHECKOUT, HostPaths
from agentbox.host.engines.root_lock import FILE_NAME
from agentbox.host.engines.state import BoxState
from agentbox.host.uninstall import caches, docker_objects, store_paths
from agentbox.host.uninstall.access_lists import access_removals
from agentbox.host.uninstall.backup_folders import backup_folders, without_folders
from agentbox.host.uninstall.boxes import box_states, process_removals, state_removals
from agentbox.host.uninstall.daemon_removals import daemon_removals
from agentbox.host.uninstall.docker_answer import UNKNOWN, DockerAnswer, ask_docker
from agentbox.host.uninstall.files import is_plain_path, size_of
from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.orphans import orphan_removals
from agentbox.host.uninstall.package_removals import package_removals
from agentbox.host.uninstall.removal import Kept, LastStep, Removal, UninstallPlan
from agentbox.host.uninstall.temporary_files import temporary_removals

_STATE_FILES = ("manifests.json", "apt.log", "dockerd.log", "dockerd.json", FILE_NAME)
_STORE_PATHS = "store-paths"  # in the state root: what was reached before the roots were removed
_GIVE_PURGE = "give --purge"


@dataclass(frozen=True)
class Planner:
    """One uninstallation of this user. `purge`: also volumes, backups and secrets; `packages`:
    also Debian packages that nobody else needs; `start_daemon`: to ask a dockerd that agentbox
    started before.
    """

    inventory: Inventory
    purge: bool
    packages: bool
    start_daemon: bool = False
    checkout: Path = CHECKOUT
    paths: HostPaths = field(default_factory=HostPaths.for_this_user)

    def plan(self) -> UninstallPlan:
        """Raises AgentboxError if the inventory cannot be read or docker does not respond although
        it has something of agentbox.
        """
        steps = list(self._steps())
        checkouts = sorted({str(self.checkout), *self.inventory.names("checkout")})
        packages, kept_packages, last_packages = package_removals(
            self.inventory,
            checkouts,
            wanted=self.packages,
            docker_users=self._docker.users(purge=self.purge),
            nix_users=self._nix_users,
        )
        steps += [*packages, *kept_packages]
        steps = without_folders(steps, backup_folders(self._states))
        return UninstallPlan(
            removals=tuple(step for step in steps if isinstance(step, Removal)),
            kept=tuple(step for step in steps if isinstance(step, Kept)),
            last=LastStep(
                packages=tuple(last_packages),
                checkouts=tuple(checkouts),
                files=tuple(str(self.inventory.directory / name) for name in _STATE_FILES),
                empty=tuple(self._empty_directories()),
            ),
            items=tuple(self.inventory.items()),
        )

    def _steps(self) -> Iterator[Removal | Kept]:
        yield from orphan_removals()
        yield from process_removals(self.inventory, self._states, purge=self.purge)
        yield from self._docker_removals()
        yield from access_removals(self._granted)
        yield from self._store_and_files()
        yield from daemon_removals(self.inventory, others=self._docker.users(purge=self.purge))
        yield from temporary_removals()

    def _docker_removals(self) -> Iterator[Removal | Kept]:
        if self._docker.unknown:
            yield Kept(
                kind="docker",
                name="what docker has",
                reason=UNKNOWN,
                foreign=not self._docker.certain,
            )
        objects = self._docker.objects
        if objects is None:
            return
        for row in objects.namesakes:
            reason = f"another compose project is named {row.project}"
            yield Kept(kind=row.kind, name=row.name, reason=reason, foreign=True)
        for kind, names in (("container", objects.containers), ("network", objects.networks)):
            for name in names:
                yield self._docker_removal(kind, name)
        for name in objects.volumes:
            if self.purge:
                yield self._docker_removal("volume", name)
            else:
                item = Item("volume", name)
                yield Kept(kind="volume", name=name, reason=_GIVE_PURGE, items=(item,))
        for name in objects.images:
            yield Removal(
                kind="image",
                name=name,
                size=docker_objects.image_size(name),
                remove=partial(docker_objects.remove_object, "image", name),
                items=(Item("image", name),),
            )

    def _docker_removal(self, kind: str, name: str) -> Removal:
        return Removal(
            kind=kind,
            name=name,
            remove=partial(docker_objects.remove_object, kind, name),
            items=(Item("volume", name),) if kind == "volume" else (),
        )

    def _store_and_files(self) -> Iterator[Removal | Kept]:
        """The roots go with caches and state directories; then the store paths are dead."""
        reached = self._reached_paths
        record = self.inventory.directory / _STORE_PATHS
        if reached:
            yield Removal(
                kind="GC roots",
                name=str(record),
                remove=partial(_save_paths, record, reached),
            )
        for cache in self._caches:
            yield Removal(
                kind="cache",
                name=str(cache),
                size=caches.cache_size(cache),
                remove=partial(caches.remove_cache, cache),
                items=(Item("cache", str(cache)),),
            )
            for path in caches.foreign_entries(cache):
                yield Kept(
                    kind="file", name=str(path), reason="agentbox did not make it", foreign=True
                )
        yield from state_removals(self._states, purge=self.purge)
        if reached:
            yield Removal(
                kind="store paths",
                name=f"{len(reached)} below {store_paths.STORE}",
                size=sum(size_of(Path(path)) for path in reached),
                remove=partial(_delete_paths, record),
            )

    def _empty_directories(self) -> list[str]:
        boxes = [str(state.directory) for state in self._states]
        ours = [str(cache) for cache in self._caches if cache.name == "agentbox"]
        parents = [name for name in self.inventory.names("parent") if is_plain_path(name)]
        return [*boxes, *ours, str(self.inventory.directory), *parents]

    @cached_property
    def _states(self) -> list[BoxState]:
        return box_states(self.inventory)

    @cached_property
    def _granted(self) -> list[str]:
        recorded = [str(path) for state in self._states for path in state.granted_directories()]
        return sorted({*recorded, *self.inventory.names("access-list")})

    @cached_property
    def _caches(self) -> list[Path]:
        """The cache directories of this user; one that a variable named is removed only while the
        variable names it."""
        noted = {Path(name) for name in self.inventory.names("cache") if is_plain_path(name)}
        ours = {self.paths.cache, *(path for path in noted if path.name == "agentbox")}
        return sorted(path for path in ours if path.is_dir())

    @cached_property
    def _reached_paths(self) -> list[str]:
        if shutil.which("nix-store") is None:
            return []
        record = self.inventory.directory / _STORE_PATHS
        saved = record.read_text().split() if record.exists() else []
        directories = self._with_roots
        return sorted({*saved, *store_paths.reached_paths(store_paths.roots_below(directories))})

    @cached_property
    def _images(self) -> set[str]:
        stamps = [stamp for state in self._states for stamp in state.all_builds()]
        recorded = {stamp.reference if stamp.pulled else stamp.image_id for stamp in stamps}
        return {*recorded, *self.inventory.names("image")}

    @cached_property
    def _docker(self) -> DockerAnswer:
        return ask_docker(self.inventory, self._states, self._images, start=self.start_daemon)

    @cached_property
    def _nix_users(self) -> tuple[str, ...]:
        return tuple(store_paths.foreign_roots(self._with_roots))

    @property
    def _with_roots(self) -> list[Path]:
        """The directories in which agentbox makes GC roots."""
        roots = [cache / caches.ROOTS for cache in self._caches]
        return [*roots, *(state.directory for state in self._states)]


def _save_paths(record: Path, paths: list[str]) -> None:
    write_atomically(record, "".join(f"{path}\n" for path in paths))


def _delete_paths(record: Path) -> None:
    store_paths.delete_dead(record.read_text().split())
    record.unlink()

"""The steps of `up` and `build` before Nix: a lock that matches the manifest, then its files in the
store.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import CHECKOUT
from agentbox.core.progress import Progress
from agentbox.host.packages.changes import LockChanges
from agentbox.host.packages.errors import NotServedError
from agentbox.host.packages.lock_inputs import lock_inputs, manifest_skills
from agentbox.host.packages.relock import (
    LOCK_NAME,
    check_inputs,
    pin_skills,
    relock,
    require_system,
)
from agentbox.host.packages.store.fetch import FetchResult, fetch_all
from agentbox.manifest.load import Manifest
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.inputs import LockInputs
from agentbox.plan.lockfile.model import Lock

Report = Callable[[str], None]


@dataclass(frozen=True)
class EnsuredLock:
    """A lock that matches its manifest. `changes` None = it already did."""

    path: Path
    lock: Lock
    changes: LockChanges | None


def lock_path(manifest: Path, checkout: Path = CHECKOUT) -> Path:
    """Return the lock of a manifest: beside it, else the checkout's."""
    adjacent = manifest.absolute().parent / LOCK_NAME
    return (
        adjacent
        if adjacent.is_file() or not (checkout / LOCK_NAME).is_file()
        else checkout / LOCK_NAME
    )


@dataclass(frozen=True)
class LockEnsurer:
    """Provides the packages of one manifest for one system. With `locked` it never updates the
    lock.
    """

    manifest: Manifest
    manifest_path: Path
    system: str
    cache: Path
    progress: Progress
    locked: bool = False
    report: Report = lambda text: None
    checkout: Path = CHECKOUT

    def ensure_lock(self) -> EnsuredLock:
        """Return a matching lock, updated if necessary.

        Raises LockError (exit 5) with `locked`, or for a system that the manifest excludes; else as
        `relock`.
        """
        path = lock_path(self.manifest_path, self.checkout)
        if not self.locked:
            path = self._pin_skills(path)
        try:
            lock = check_inputs(path, self._inputs(path))
            require_system(lock, self.system)
        except LockError as error:
            if self.locked or self.system not in self._inputs(path).systems:
                raise
            self.report(f"{error.message}; locking again")
            return self._relock(path)
        return EnsuredLock(path, lock, None)

    def _pin_skills(self, path: Path) -> Path:
        """Returns the path of the lock, which is then beside the manifest if skills differed."""
        adjacent = self.manifest_path.absolute().parent / LOCK_NAME
        changed = pin_skills(adjacent, self._inputs(path), base=path)
        if changed:
            self.report(f"skills pinned: {changed}")
        return adjacent if changed else path

    def fetch_files(
        self, ensured: EnsuredLock, *, offline: bool = False
    ) -> tuple[EnsuredLock, FetchResult]:
        """Put the files into the store; versions that are no longer served are locked again first,
        unless `locked`.

        Raises NotServedError (exit 5) with `locked`, FetchError (exit 4), PrerequisiteError (exit
        3).
        """
        try:
            return ensured, self._fetch(ensured.lock, offline)
        except NotServedError as error:
            if self.locked or ensured.changes is not None:
                raise
            self.report(f"{error.message}; locking again")
        # A version that is no longer served is ignored as a pin; the others are kept.
        updated = self._relock(ensured.path)
        return updated, self._fetch(updated.lock, offline)

    def _inputs(self, path: Path) -> LockInputs:
        configured = self.manifest.usable.image.systems
        return lock_inputs(
            self.manifest,
            lock=path,
            systems=() if configured else (self.system,),
            skills=manifest_skills(self.manifest),
            checkout=self.checkout,
        )

    def _fetch(self, lock: Lock, offline: bool) -> FetchResult:
        systems = (self.system,)
        return fetch_all(
            lock, cache=self.cache, progress=self.progress, systems=systems, offline=offline
        )

    def _relock(self, path: Path) -> EnsuredLock:
        adjacent = self.manifest_path.absolute().parent / LOCK_NAME
        update = relock(
            adjacent, self._inputs(path), cache=self.cache, progress=self.progress, base=path
        )
        self.report(update.changes.summary)
        for change in update.changes.rows:
            self.report(f"  {change}")
        return EnsuredLock(adjacent, update.lock, update.changes)

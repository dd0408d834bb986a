"""What `up` and `build` do before Nix: a lock that fits the manifest, then its files in the store."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import CHECKOUT
from agentbox.core.progress import Progress
from agentbox.host.packages.changes import Changes
from agentbox.host.packages.errors import NotServedError
from agentbox.host.packages.relock import LOCK_NAME, check_inputs, relock, require_system
from agentbox.host.packages.store.fetch import Fetched, fetch_all
from agentbox.host.packages.wanted import inputs_of
from agentbox.manifest.load import Manifest
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.inputs import Inputs
from agentbox.plan.lockfile.model import Lock

Say = Callable[[str], None]


@dataclass(frozen=True)
class Fitting:
    """A lock that fits its manifest. `changes` None = it was right as it was."""

    path: Path
    lock: Lock
    changes: Changes | None


def lock_path(manifest: Path, checkout: Path = CHECKOUT) -> Path:
    """The lock that goes with a manifest: beside it; until there is one, the checkout's."""
    beside = manifest.absolute().parent / LOCK_NAME
    return beside if beside.is_file() or not (checkout / LOCK_NAME).is_file() else checkout / LOCK_NAME


@dataclass(frozen=True)
class Bringer:
    """Brings the packages of one manifest for one system. With `locked` it refuses where it would lock again."""

    manifest: Manifest
    manifest_path: Path
    system: str
    cache: Path
    progress: Progress
    locked: bool = False
    say: Say = lambda text: None
    checkout: Path = CHECKOUT

    def fitting_lock(self) -> Fitting:
        """The lock that fits, made anew where it must be.

        Raises LockError (exit 5) with `locked`, or for a system that the manifest leaves out; else what `relock` raises.
        """
        path = lock_path(self.manifest_path, self.checkout)
        try:
            lock = check_inputs(path, self._inputs(path))
            require_system(lock, self.system)
        except LockError as error:
            if self.locked or self.system not in self._inputs(path).systems:
                raise
            self.say(f"{error.message}; locking again")
            return self._again(path)
        return Fitting(path, lock, None)

    def fetched(self, fitting: Fitting, *, offline: bool = False) -> tuple[Fitting, Fetched]:
        """The files in the store; versions that are served no more are locked anew first, unless `locked`.

        Raises NotServedError (exit 5) with `locked`, FetchError (exit 4), PrerequisiteError (exit 3).
        """
        try:
            return fitting, self._fetch(fitting.lock, offline)
        except NotServedError as error:
            if self.locked or fitting.changes is not None:
                raise
            self.say(f"{error.message}; locking again")
        # A version that is gone is passed over when the locked ones are asked for; the others stay as they are.
        again = self._again(fitting.path)
        return again, self._fetch(again.lock, offline)

    def _inputs(self, path: Path) -> Inputs:
        named = self.manifest.usable.image.systems
        return inputs_of(self.manifest, lock=path, systems=() if named else (self.system,), checkout=self.checkout)

    def _fetch(self, lock: Lock, offline: bool) -> Fetched:
        systems = (self.system,)
        return fetch_all(lock, cache=self.cache, progress=self.progress, systems=systems, offline=offline)

    def _again(self, path: Path) -> Fitting:
        beside = self.manifest_path.absolute().parent / LOCK_NAME
        done = relock(beside, self._inputs(path), cache=self.cache, progress=self.progress, base=path)
        self.say(done.changes.summary)
        for change in done.changes.rows:
            self.say(f"  {change}")
        return Fitting(beside, done.lock, done.changes)

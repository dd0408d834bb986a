"""`agentbox fetch`: every file of a lock into the Nix store, by digest, with what is at hand first."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.progress import Progress
from agentbox.host.packages.errors import FetchError, GoneError, NoNetworkError
from agentbox.host.packages.locate import locate
from agentbox.host.packages.relock import require_system
from agentbox.host.packages.select import Needed, needed
from agentbox.host.packages.store import nixstore
from agentbox.host.packages.store.seed import STORE_NAME, unpacked
from agentbox.host.packages.transfer.cache import Cache, difference, mismatch
from agentbox.host.packages.transfer.download import Downloads
from agentbox.host.packages.wanted import host_system
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, Lock
from agentbox.plan.lockfile.writer import write

_NAMED = 5
_SOURCES = {"debian": "Debian packages", "wheels": "Python packages", "npm": "npm packages"}


@dataclass(frozen=True)
class Fetched:
    """What a fetch did: files in all, files and bytes that had to be added to the store."""

    total: int
    added: int
    added_bytes: int

    @property
    def summary(self) -> str:
        if not self.added:
            return f"all {self.total} files are in the store; no network needed"
        return f"added {self.added} of {self.total} files ({megabytes(self.added_bytes)}) to the store"


def fetch_all(
    lock: Lock,
    *,
    cache: Path,
    progress: Progress,
    systems: Sequence[str] = (),
    offline: bool = False,
    source: Path | None = None,
    target: Path | None = None,
    jobs: int = 8,
) -> Fetched:
    """Brings what images for `systems` (none given: this machine's) need into the store and roots it there.

    `source` is a folder that an earlier call filled as its `target`. Files that came are kept when others fail.
    Raises LockError for a system that is not covered, NotServedError (exit 5) when a locked version is gone,
    FetchError (exit 4): no network, other bytes than locked; PrerequisiteError (exit 3): no Nix, no apt.
    """
    host = host_system()
    items = _items(lock, systems or (host,), host)
    have = nixstore.valid([nixstore.flat_path(item.entry) for item in items])
    missing = [item for item in items if nixstore.flat_path(item.entry) not in have]
    store = Cache(cache / "files")
    if source is not None:
        _take(store, missing, source)
    _bring(lock, [item for item in missing if not store.has(item.entry)], len(items), store, progress, offline, jobs)
    nixstore.add_files([(item.entry, store.path(item.entry)) for item in missing])
    seeds = [_seed(lock, ARCH_OF_SYSTEM[host], store)]
    paths = [nixstore.flat_path(item.entry) for item in items]
    nixstore.root_paths(roots_folder(cache, lock) / "+".join(sorted(systems or (host,))), [*paths, *seeds])
    if target is not None:
        _give(lock, items, target)
    return Fetched(len(items), len(missing), sum(item.entry.size for item in missing))


def roots_folder(cache: Path, lock: Lock) -> Path:
    """Where the links lie, a folder for each set of systems, that keep a lock's files from Nix's garbage collection."""
    return cache / "roots" / hashlib.sha256(write(lock)).hexdigest()[:12]


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"


def _items(lock: Lock, systems: Sequence[str], host: str) -> list[Needed]:
    found: dict[str, Needed] = {}
    for system in (host, *systems):
        require_system(lock, system)
    for system in systems:
        found |= {item.entry.file: item for item in needed(lock, system, host)}
    return list(found.values())


def _bring(
    lock: Lock, absent: Sequence[Needed], total: int, store: Cache, progress: Progress, offline: bool, jobs: int
) -> None:
    if not absent:
        return
    if offline:
        raise _incomplete(absent, total)
    try:
        try:
            _download(lock, absent, store, progress, jobs, fresh=False)
        except GoneError:
            # The lists at hand are older than the mirror. Newer ones say what it serves now, or where the file went.
            left = [item for item in absent if not store.path(item.entry).exists()]
            _download(lock, left, store, progress, jobs, fresh=True)
    except NoNetworkError as error:
        left = [item for item in absent if not store.path(item.entry).exists()]
        raise _incomplete(left, total) from error


def _download(
    lock: Lock, absent: Sequence[Needed], store: Cache, progress: Progress, jobs: int, *, fresh: bool
) -> None:
    progress.stage("ask the mirrors")
    origins = {origin.entry.file: origin for origin in locate(lock, absent, store.folder.parent, fresh=fresh)}
    progress.done()
    for name, shown in _SOURCES.items():
        batch = [origins[item.entry.file] for item in absent if item.source == name]
        Downloads(store, progress, jobs).run(f"fetch {shown}", batch)


def _take(store: Cache, items: Sequence[Needed], source: Path) -> None:
    """Copies what a folder has into the cache. Raises FetchError for a file with other bytes."""
    for item in items:
        given = source / item.entry.file
        if given.is_file() and not store.has(item.entry):
            if what := difference(item.entry, given):
                raise mismatch(item.entry, what)
            with store.part(item.entry) as part:
                shutil.copyfile(given, part)
                store.accept(item.entry, part)


def _give(lock: Lock, items: Sequence[Needed], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for item in items:
        copy = target / item.entry.file
        if not (copy.is_file() and not difference(item.entry, copy)):
            shutil.copyfile(nixstore.flat_path(item.entry), copy)
            copy.chmod(0o644)
    (target / "agentbox.lock").write_bytes(write(lock))


def _seed(lock: Lock, arch: str, store: Cache) -> str:
    """The store path of the build tools, unpacked and added unless it is there."""
    seed = lock.seed[arch]
    path = nixstore.recursive_path(seed, STORE_NAME)
    if nixstore.valid([path]):
        return path
    debs = {row.name: Path(nixstore.flat_path(row)) for row in seed.files}
    with unpacked(debs) as folder:
        added = nixstore.add_folder(folder, STORE_NAME)
    if added != path:
        raise FetchError("cannot unpack the build tools: they differ from the lock", "Run `agentbox lock`.")
    return path


def _incomplete(absent: Sequence[Needed], total: int) -> FetchError:
    names = [item.entry.name for item in absent]
    more = ", …" if len(names) > _NAMED else ""
    size = megabytes(sum(item.entry.size for item in absent))
    return FetchError(
        f"cannot fetch {len(names)} of {total} files ({size}): no network. Missing: {', '.join(names[:_NAMED])}{more}",
        "Connect, or `agentbox fetch --from DIR`.",
    )

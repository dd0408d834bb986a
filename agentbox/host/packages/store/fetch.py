"""`agentbox fetch`: puts every file of a lock into the Nix store, by digest, cached files first."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.progress import Progress
from agentbox.host.packages.errors import FetchError, FileMissingError, NoNetworkError
from agentbox.host.packages.lock_inputs import host_system
from agentbox.host.packages.origin_lookup import find_origins
from agentbox.host.packages.relock import require_system
from agentbox.host.packages.required_lock_files import RequiredFile, required_files
from agentbox.host.packages.store import nix_store
from agentbox.host.packages.store.build_tools import STORE_NAME, unpacked_seed
from agentbox.host.packages.transfer.cache import Cache, describe_difference, mismatch_error
from agentbox.host.packages.transfer.download import Downloads
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, Lock
from agentbox.plan.lockfile.writer import serialize_lock

_MAX_LISTED = 5
_SOURCES = {"debian": "Debian packages", "wheels": "Python packages", "npm": "npm packages"}


@dataclass(frozen=True)
class FetchResult:
    """The result of a fetch: all files, and files and bytes added to the store."""

    total: int
    added: int
    added_bytes: int

    @property
    def summary(self) -> str:
        if not self.added:
            return f"all {self.total} files are in the store; no network needed"
        return (
            f"added {self.added} of {self.total} files ({megabytes(self.added_bytes)}) to the store"
        )


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
) -> FetchResult:
    """Puts the files of images for `systems` (default: this machine's) into the store and adds GC
    roots.

    `source` is a directory that an earlier call wrote as its `target`. Fetched files are kept if
    others fail. Raises LockError for a system that is not covered, NotServedError (exit 5) if a
    locked version is not served, FetchError (exit 4): no network, unexpected bytes;
    PrerequisiteError (exit 3): no Nix, no apt.
    """
    host = host_system()
    items = _select_files(lock, systems or (host,), host)
    present = nix_store.valid_paths([nix_store.flat_path(item.entry) for item in items])
    missing = [item for item in items if nix_store.flat_path(item.entry) not in present]
    store = Cache(cache / "files")
    if source is not None:
        _import_files(store, missing, source)
    _fetch_missing(
        lock,
        [item for item in missing if not store.has(item.entry)],
        len(items),
        store,
        progress,
        offline,
        jobs,
    )
    nix_store.add_files([(item.entry, store.path(item.entry)) for item in missing])
    seeds = [_seed(lock, ARCH_OF_SYSTEM[host], store)]
    paths = [nix_store.flat_path(item.entry) for item in items]
    nix_store.root_paths(
        roots_directory(cache, lock) / "+".join(sorted(systems or (host,))), [*paths, *seeds]
    )
    if target is not None:
        _export_files(lock, items, target)
    return FetchResult(len(items), len(missing), sum(item.entry.size for item in missing))


def roots_directory(cache: Path, lock: Lock) -> Path:
    """The directory of the GC roots of a lock, with a directory for each set of systems."""
    return cache / "roots" / hashlib.sha256(serialize_lock(lock)).hexdigest()[:12]


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"


def _select_files(lock: Lock, systems: Sequence[str], host: str) -> list[RequiredFile]:
    by_file: dict[str, RequiredFile] = {}
    for system in (host, *systems):
        require_system(lock, system)
    for system in systems:
        by_file |= {item.entry.file: item for item in required_files(lock, system, host)}
    return list(by_file.values())


def _fetch_missing(
    lock: Lock,
    missing: Sequence[RequiredFile],
    total: int,
    store: Cache,
    progress: Progress,
    offline: bool,
    jobs: int,
) -> None:
    if not missing:
        return
    if offline:
        raise _incomplete_error(missing, total)
    try:
        try:
            _download(lock, missing, store, progress, jobs, fresh=False)
        except FileMissingError:
            # The cached lists are older than the mirror. New ones have the current versions and
            # paths.
            remaining = [item for item in missing if not store.path(item.entry).exists()]
            _download(lock, remaining, store, progress, jobs, fresh=True)
    except NoNetworkError as error:
        remaining = [item for item in missing if not store.path(item.entry).exists()]
        raise _incomplete_error(remaining, total) from error


def _download(
    lock: Lock,
    missing: Sequence[RequiredFile],
    store: Cache,
    progress: Progress,
    jobs: int,
    *,
    fresh: bool,
) -> None:
    progress.stage("query the mirrors")
    origins = {
        origin.entry.file: origin
        for origin in find_origins(lock, missing, store.directory.parent, fresh=fresh)
    }
    progress.done()
    for name, label in _SOURCES.items():
        batch = [origins[item.entry.file] for item in missing if item.source == name]
        Downloads(store, progress, jobs).run(f"fetch {label}", batch)


def _import_files(store: Cache, items: Sequence[RequiredFile], source: Path) -> None:
    """Copies files from a directory into the cache. Raises FetchError for a file with other
    bytes.
    """
    for item in items:
        candidate = source / item.entry.file
        if candidate.is_file() and not store.has(item.entry):
            if detail := describe_difference(item.entry, candidate):
                raise mismatch_error(item.entry, detail)
            with store.partial_file(item.entry) as partial:
                shutil.copyfile(candidate, partial)
                store.accept(item.entry, partial)


def _export_files(lock: Lock, items: Sequence[RequiredFile], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for item in items:
        copy = target / item.entry.file
        if not (copy.is_file() and not describe_difference(item.entry, copy)):
            shutil.copyfile(nix_store.flat_path(item.entry), copy)
            copy.chmod(0o644)
    (target / "agentbox.lock").write_bytes(serialize_lock(lock))


def _seed(lock: Lock, arch: str, store: Cache) -> str:
    """Return the store path of the build tools, unpacking and adding them if necessary."""
    seed = lock.seed[arch]
    path = nix_store.recursive_path(seed, STORE_NAME)
    if nix_store.valid_paths([path]):
        return path
    debs = {row.name: Path(nix_store.flat_path(row)) for row in seed.files}
    with unpacked_seed(debs) as directory:
        added = nix_store.add_directory(directory, STORE_NAME)
    if added != path:
        raise FetchError(
            "cannot unpack the build tools: they differ from the lock", "Run `agentbox lock`."
        )
    return path


def _incomplete_error(missing: Sequence[RequiredFile], total: int) -> FetchError:
    names = [item.entry.name for item in missing]
    suffix = ", …" if len(names) > _MAX_LISTED else ""
    size = megabytes(sum(item.entry.size for item in missing))
    return FetchError(
        f"cannot fetch {len(names)} of {total} files ({size}): no network. Missing: "
        f"{', '.join(names[:_MAX_LISTED])}{suffix}",
        "Connect to the network, or use `agentbox fetch --from DIR`.",
    )

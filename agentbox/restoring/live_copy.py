"""A copy of the state of a box that works meanwhile, for the rehearsal of an upgrade. Each store is
of one moment; the journal is last, so that nothing refers to a record that it has not.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.segments import segment_files
from agentbox.api.stores import read_stores
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.copying import copy_file
from agentbox.core.paths import Paths
from agentbox.restoring.errors import disk_errors
from agentbox.restoring.members import volume_roots
from agentbox.restoring.no_return import end_agents, end_mesh_sessions
from agentbox.restoring.restore import SPARE_BYTES, require_empty

DOING: Final = "rehearse the upgrade"
_FIRST, _LAST = "stores", "events"
# What a box makes anew, and what is another volume.
_LEFT: Final = frozenset({"backups", "boot", "branches", "generations", "held", "lock", "probes"})
_DERIVED: Final = ("search.db", "search.db-wal", "search.db-shm")
_SIDE_FILES: Final = (".db-wal", ".db-shm")


def copy_live(paths: Paths, present: Path) -> dict[str, Any]:
    """Copies `present`, the state folder of another box, into the empty volumes below `paths`, and
    ends its agents there. Returns what an upgrade notes before the stop. Raises AgentboxError.
    """
    with disk_errors(DOING):
        require_empty(DOING, volume_roots(paths))
        files = sorted(_files(present), key=lambda name: _turn(name))
        _require_room(paths, sum((present / name).lstat().st_size for name in files))
        for name in files:
            target = paths.state / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if name.endswith(".db"):
                _copy_store(present / name, target)
            else:
                copy_file(present / name, target)
        seq, digest = _end_journal(paths.slot("events"))
        end_agents(paths)
        end_mesh_sessions(paths)
    stores = {name: store.to_wire() for name, store in read_stores(paths).items()}
    return {"stores": stores, "journal_seq": seq, "journal_hash": digest}


def _turn(name: str) -> tuple[int, str]:
    """What is known of the stores first, then the stores, the journal last."""
    folder = name.partition("/")[0]
    if folder == _LAST:
        return 3, name
    return (0 if folder == _FIRST else 1 if name.endswith(".db") else 2), name


def _files(present: Path) -> Iterator[str]:
    """Regular files below the state, by path; what goes meanwhile is left out."""
    for folder, folders, names in os.walk(present):
        if Path(folder) == present:
            folders[:] = [name for name in folders if name not in _LEFT]
            names = [name for name in names if name not in _LEFT]
        for name in names:
            path = Path(folder, name)
            try:
                is_file = stat.S_ISREG(path.lstat().st_mode)
            except FileNotFoundError:
                continue
            if is_file and name not in _DERIVED and not name.endswith(_SIDE_FILES):
                yield str(path.relative_to(present))


def _require_room(paths: Paths, size: int) -> None:
    paths.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    volume = os.statvfs(paths.state)
    free = volume.f_bavail * volume.f_frsize
    if size + SPARE_BYTES > free:
        raise AgentboxError(
            f"cannot {DOING}: the copy takes {size + SPARE_BYTES} bytes, and {free} are free",
            "Free room where the volumes are; the box was not touched.",
            exit_code=ExitCode.PREREQUISITE,
        )


def _copy_store(source: Path, target: Path) -> None:
    from agentbox.core.storage.sqlite_snapshot import StoreSnapshot

    try:
        snapshot = StoreSnapshot(source)
        try:
            snapshot.begin(10.0)
            snapshot.copy_to(target)
        finally:
            snapshot.close()
    except apsw.Error as error:
        raise AgentboxError(
            f"cannot {DOING}: {source.name} cannot be read: {error}", exit_code=ExitCode.ENGINE
        ) from error


def _end_journal(directory: Path) -> tuple[int, str]:
    """Cuts a line that was copied while it was written; seq and hash of the last one, -1 without
    one.
    """
    segments = segment_files(directory) if directory.is_dir() else []
    for path in reversed(segments):
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(path, len(whole))
        if whole and (parsed := chain.parse_line(whole.splitlines()[-1])) is not None:
            return parsed.seq, parsed.hash
    return -1, ""

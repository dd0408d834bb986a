"""Writes what was cut into a staging directory, while the box goes on. Blocks."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import apsw

from agentbox import __version__
from agentbox.adapters.runtime.cut import JournalPart
from agentbox.api.backups.cut import OpenCut
from agentbox.api.backups.parts import Tree, box_files
from agentbox.contracts.backups import CUT_FILE, Cut
from agentbox.core.canonical import canonical_json
from agentbox.core.files.copying import copy_file, copy_tree, file_sizes
from agentbox.core.files.member_names import member_name
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.core.storage.sqlite_errors import to_adapter_error

LIVE_FILE: Final = "branches/live.json"  # agents whose branch was copied while they ran
MAX_CHANGED: Final = 1 << 18  # bytes of names; a restore reads 1 MiB of `cut.json`
_ARCHIVE_SHARE: Final = 2  # staged files, and the archive of them


def check_room(folder: Path, size: int, min_free: int) -> None:
    """Raises QuotaExceeded unless `size` bytes can be staged and archived, with `min_free` left."""
    found = os.statvfs(folder)
    free, needed = found.f_bavail * found.f_frsize, size * _ARCHIVE_SHARE + min_free
    if needed > free:
        raise QuotaExceeded(
            f"cannot make a backup: it needs {needed} bytes where snapshots are, {free} are free",
            hint="Free room there, name another folder by backup.folder, or lower backup.min_free.",
            limit="backup",
            observed=needed,
            cap=free,
            config_path="backup.min_free",
        )


def stage(
    cut: OpenCut,
    paths: Paths,
    folders: Sequence[Tree],
    lengths: dict[str, dict[str, int]],
    stop: Callable[[], None],
) -> Cut:
    """Fills `staging/<id>` and writes `cut.json` last. `lengths`: of growing files by path, of each
    tree by its target; `stop` raises if the work is to end. Raises AdapterError, OSError.
    """
    target = paths.backup_staging / cut.id
    target.mkdir(mode=0o700, parents=True)
    stores: dict[str, int] = {}
    counts: dict[str, int] = {}
    changed: list[str] = []
    for slot, part in cut.slots.items():
        staged = part.stage(target, stop)
        stores |= staged.stores
        changed += staged.changed
        if staged.count is not None:
            counts[slot] = staged.count
    stores |= _stage_stores(cut, target, stop, counts)
    for tree in folders:
        found = copy_tree(
            tree.source,
            target / tree.target,
            skip=tree.skip,
            stop=stop,
            lengths=lengths.get(tree.target),
        )
        changed += [f"{tree.target}/{path}".rstrip("/") for path in found]
    _stage_box(cut, paths, target)
    journal = cut.slots.get("events")
    document = Cut(
        id=cut.id,
        time=cut.time,
        tag=cut.tag,
        seq=cut.seq,
        journal_bytes=journal.bytes if isinstance(journal, JournalPart) else 0,
        epoch=cut.epoch,
        box=cut.plan.name,
        release=__version__,
        plan_digest=cut.plan.digest,
        stores=dict(sorted(stores.items())),
        counts=counts,
        partial=cut.partial,
        changed=_names(changed),
    )
    (target / CUT_FILE).write_bytes(canonical_json(document.to_wire()) + b"\n")
    return document


def note_lengths(folders: Sequence[Tree]) -> dict[str, dict[str, int]]:
    """The lengths of growing files, by the tree's target and by path."""
    return {tree.target: file_sizes(tree.source, tree.skip) for tree in folders if tree.growing}


def clean_staging(paths: Paths) -> None:
    """Removes what a killed backup left. Raises OSError."""
    if paths.backup_staging.is_dir():
        remove_staged(paths.backup_staging)


def remove_staged(folder: Path) -> None:
    """Removes a staged tree, also what is in folders that agents made read-only. Raises OSError."""
    for below, names, _ in os.walk(folder):
        for name in names:
            if not (path := Path(below, name)).is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)


def _names(changed: Sequence[str]) -> tuple[str, ...]:
    """Sorted, and cut off after MAX_CHANGED bytes: agents choose how many there are."""
    names, size = sorted(member_name(path) for path in changed), 0
    for number, name in enumerate(names):
        size += len(name.encode())
        if size > MAX_CHANGED:
            return (*names[:number], f"({len(names) - number} more)")
    return tuple(names)


def _stage_stores(
    cut: OpenCut, target: Path, stop: Callable[[], None], counts: dict[str, int]
) -> dict[str, int]:
    stores: dict[str, int] = {}
    for name, store in cut.stores.items():
        stop()
        path = f"state/{name}"
        try:
            store.copy_to(target / path)
            stores[path] = store.migration
            if name == "orchestrator/agents.db":
                counts["agents"] = int(store.rows("SELECT count(*) FROM agents")[0][0])
                live = [row[0] for row in store.rows("SELECT agent_id FROM agents WHERE over = 0")]
                _write(target / LIVE_FILE, canonical_json(live))
        except apsw.Error as error:
            raise to_adapter_error(error, Path(name).name, "", "") from error
    return stores


def _stage_box(cut: OpenCut, paths: Paths, target: Path) -> None:
    for name, source in box_files(paths, canonical_json(cut.plan.to_json())):
        if isinstance(source, bytes):
            _write(target / "box" / name, source)
        else:
            copy_file(source, target / "box" / name)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)

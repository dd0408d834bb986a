"""A staging directory of the state of a real box, as a cut makes it: databases by SQLite's own
backup, the journal up to its last whole line, other files as they are.
"""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from agentbox import __version__
from agentbox.adapters.events.journal.epoch import read_epoch
from agentbox.contracts.backups import CUT_FILE, Cut, SnapshotMember
from agentbox.core import clock
from agentbox.core.canonical import canonical_json, file_sha256
from agentbox.core.paths import Paths
from agentbox.restoring.allowed import is_allowed, is_skipped

_LEFT = {"backups", "branches", "probes", "lock", "stores", "boot", "mgmt-key"}
_SUFFIXES = ("-wal", "-shm", ".lock", ".sock")


def stage(paths: Paths, folder: Path, *, snapshot: str = "snapshot-1", **changes: Any) -> Cut:
    """Copies the state below `paths` to `folder`; `changes` are members of the record of the cut."""
    _copy(paths.state, folder / "state", folder)
    if paths.branches.is_dir():
        shutil.copytree(paths.branches, folder / "branches", symlinks=True)
    (folder / "branches").mkdir(parents=True, exist_ok=True)
    seq, size = _cut_journal(folder / "state" / "events")
    wire: dict[str, Any] = {
        "id": snapshot, "time": clock.to_wire(clock.now()), "tag": "", "seq": seq,
        "journal_bytes": size, "epoch": read_epoch(paths.slot("events")), "box": "box",
        "release": __version__, "plan_digest": "sha256:" + "0" * 64, **changes,
    }  # fmt: skip
    cut = Cut.from_wire(wire)
    (folder / CUT_FILE).write_bytes(canonical_json(cut.to_wire()))
    return cut


def members_of(folder: Path) -> tuple[SnapshotMember, ...]:
    """What the head of a snapshot says of the files of a staging directory."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return tuple(
        SnapshotMember(
            path=str(file.relative_to(folder)), size=file.stat().st_size, sha256=file_sha256(file)
        )
        for file in files
    )


def _copy(source: Path, target: Path, staging: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.name in _LEFT or path.name.endswith(_SUFFIXES) or path.name.startswith("search.db"):
            continue
        kind = "folder" if path.is_dir() else "file"
        member = str((target / path.name).relative_to(staging))
        if is_skipped(member) or not is_allowed(member, kind, secrets=False):
            continue
        if path.is_dir():
            _copy(path, target / path.name, staging)
        elif path.suffix == ".db":
            with (
                closing(apsw.Connection(str(path))) as live,
                closing(apsw.Connection(str(target / path.name))) as copy,
                copy.backup("main", live, "main") as backup,
            ):
                backup.step()
        else:
            shutil.copy2(path, target / path.name)
    shutil.copystat(source, target)


def _cut_journal(directory: Path) -> tuple[int, int]:
    segments = sorted(directory.glob("*.jsonl"))
    if not segments:
        return 0, 0
    text = segments[-1].read_bytes()
    whole = text[: text.rindex(b"\n") + 1]
    segments[-1].write_bytes(whole)
    last = json.loads(whole.splitlines()[-1])
    return int(last["seq"]), sum(segment.stat().st_size for segment in segments)

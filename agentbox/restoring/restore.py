"""The steps of a restore: `make_state` while the box still runs, `settle` once it is stopped."""

import json
import os
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import chain
from pathlib import Path

import apsw

from agentbox.backup.repository import OpenedMember
from agentbox.contracts.backups import CUT_FILE, Cut, SnapshotMember
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.records.wire import Record, record
from agentbox.core.slot_errors import AdapterError, ValidationError
from agentbox.restoring import journal, no_return, pods_index, present
from agentbox.restoring.allowed import slots
from agentbox.restoring.errors import damaged, disk_errors, no_room
from agentbox.restoring.members import unpack, volume_roots
from agentbox.restoring.release import check_release
from agentbox.restoring.stores import check_and_migrate, count_rows, require_counts, require_stores

SPARE_BYTES = 64 << 20  # for migrations and what the box writes at its start


@record
class RestoreOptions(Record):
    """`members`: what the head names, null without a head. `box`: name of the restored box;
    `new_identity`: it is another box than that of the snapshot. `keep_tokens`: named tokens work
    as they did.
    """

    snapshot: str
    box: str
    new_identity: bool = False
    keep_tokens: bool = False
    members: tuple[SnapshotMember, ...] | None = None


@record
class RestoredState(Record):
    """`left`: members that no volume has, such as the tables of a shared database. `partial`: slots
    that were down at the cut, so that nothing of them is here. `box`: whose state it is. `stores`:
    the last migration of each store; `rows`: what the operator would miss, by store; `journal_seq`
    and `journal_hash`: the record `journal.restored`, -1 of an earlier release. The other members
    are counts.
    """

    snapshot: str
    box: str
    seq: int
    epoch: int
    files: int
    size: int
    objects: int
    tokens_disabled: int
    agents_ended: int
    sessions_ended: int
    left: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    stores: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    journal_seq: int = -1
    journal_hash: str = ""


def make_state(
    paths: Paths, members: Iterable[OpenedMember], options: RestoreOptions
) -> RestoredState:
    """Makes a state of the members in the empty volumes below `paths`. Raises AgentboxError: exit 1
    for a damaged snapshot or one of a newer release, 3 for too little room.
    """
    snapshot = options.snapshot
    with disk_errors(f"restore {snapshot}"):
        roots = volume_roots(paths)
        require_empty(f"restore {snapshot}", roots)
        expected, room = None, _free(roots) - SPARE_BYTES
        if options.members is not None:
            expected = {member.path: member for member in options.members}
            size = sum(member.size for member in options.members)
            if size > room:
                raise no_room(snapshot, size + SPARE_BYTES, room + SPARE_BYTES)
        try:
            unpacked = unpack(snapshot, members, roots, expected, room)
        except tarfile.TarError as error:  # a body that ends early
            raise damaged(snapshot, "its stream", f"cannot be read: {error}") from error
        cut = _parse_cut(snapshot, unpacked.cut)
        check_release(snapshot, cut.release)
        require_stores(snapshot, paths, cut, unpacked.left)
        stores = check_and_migrate(snapshot, paths)
        require_counts(snapshot, paths, cut)
        objects = pods_index.check_and_index(snapshot, paths)
        journal.check(snapshot, paths, cut)
        disabled = 0 if options.keep_tokens else no_return.disable_tokens(paths)
        agents = no_return.end_agents(paths)
        sessions = no_return.end_mesh_sessions(paths)
        no_return.end_sessions(paths)
        if options.new_identity:
            no_return.forget_identity(paths)
        epoch = journal.next_epoch(cut)
        restored = journal.continue_as_fork(paths, options.box, cut, epoch)
        rows = count_rows(paths)
        sync(*roots.values())
    return RestoredState(
        snapshot=snapshot,
        box=cut.box,
        seq=cut.seq,
        epoch=epoch,
        files=unpacked.files,
        size=unpacked.size,
        objects=objects,
        tokens_disabled=disabled,
        agents_ended=agents,
        sessions_ended=sessions,
        left=unpacked.left,
        stores=stores,
        rows=rows,
        journal_seq=restored.seq,
        journal_hash=restored.hash,
        partial=cut.partial,
    )


def settle(snapshot: str, paths: Paths, present_state: Path) -> str:
    """Takes from the state folder of the stopped box what must not go back: budgets that were
    spent, and its own secrets. Returns why the budgets are those of the snapshot, "" if they are
    not: a box with a damaged store is what a restore is for. Raises AgentboxError (exit 3).
    """
    kept = ""
    with disk_errors(f"restore {snapshot}", stopped=True):
        try:
            present.take_budgets(paths, present_state)
        except (apsw.Error, AdapterError) as error:
            kept = f"{present.BUDGETS} of the stopped box cannot be read: {error}"
        present.take_secrets(paths, present_state)
        sync(paths.state)
    return kept


def _parse_cut(snapshot: str, text: bytes) -> Cut:
    try:
        return Cut.from_wire(json.loads(text))
    except (ValueError, RecursionError, ValidationError) as error:
        raise damaged(snapshot, CUT_FILE, f"is not the record of a cut: {error}") from error


def require_empty(doing: str, roots: Mapping[str, Path]) -> None:
    """Raises AgentboxError (exit 1) if something is in one of these volumes."""
    for name, root in roots.items():
        folders = [root / slot for slot in slots()] if name == "state" else [root]
        if any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
            raise AgentboxError(
                f"cannot {doing}: {root} is not empty", "The box was not touched. Run it again."
            )


def _free(roots: Mapping[str, Path]) -> int:
    """Bytes that are free where there is the least."""
    roots["state"].mkdir(mode=0o700, parents=True, exist_ok=True)
    volumes = [os.statvfs(root) for root in roots.values() if root.is_dir()]
    return min(volume.f_bavail * volume.f_frsize for volume in volumes)


def sync(*roots: Path) -> None:
    """Writes everything of the volumes to the disk; of one below another, once."""
    tops = [root for root in roots if not any(other in root.parents for other in roots)]
    for directory, _folders, files in chain.from_iterable(map(os.walk, tops)):
        for path in (Path(directory), *(Path(directory) / name for name in files)):
            if path.is_symlink():
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

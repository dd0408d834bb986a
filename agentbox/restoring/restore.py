"""The steps of a restore: `make_state` while the box still runs, `settle` once it is stopped."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from agentbox.backup.repository import OpenedMember
from agentbox.contracts.backups import CUT_FILE, Cut, SnapshotMember
from agentbox.core.paths import Paths
from agentbox.core.records.wire import Record, record
from agentbox.core.slot_errors import ValidationError
from agentbox.restoring import journal, no_return, pods_index, present
from agentbox.restoring.errors import damaged, disk_errors, no_room
from agentbox.restoring.members import unpack, volume_roots
from agentbox.restoring.release import check_release
from agentbox.restoring.stores import check_and_migrate

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
    """`left`: members that no volume has, such as the tables of a shared database. `box`: whose
    state it is. `stores`: the last migration of each store. The other members are counts.
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
    stores: Mapping[str, int] = field(default_factory=dict)


def make_state(
    paths: Paths, members: Iterable[OpenedMember], options: RestoreOptions
) -> RestoredState:
    """Makes a state of the members in the empty volumes below `paths`. Raises AgentboxError: exit 1
    for a damaged snapshot or one of a newer release, 3 for too little room.
    """
    snapshot = options.snapshot
    with disk_errors(snapshot):
        _require_empty(snapshot, paths)
        expected = None
        if options.members is not None:
            expected = {member.path: member for member in options.members}
            _require_room(snapshot, paths, sum(member.size for member in options.members))
        unpacked = unpack(snapshot, members, volume_roots(paths), expected)
        cut = _parse_cut(snapshot, unpacked.cut)
        check_release(snapshot, cut.release)
        stores = check_and_migrate(snapshot, paths)
        objects = pods_index.check_and_index(snapshot, paths)
        journal.check(snapshot, paths, cut)
        disabled = 0 if options.keep_tokens else no_return.disable_tokens(paths)
        agents = no_return.end_agents(paths)
        sessions = no_return.end_mesh_sessions(paths)
        if options.new_identity:
            no_return.forget_identity(paths)
        epoch = journal.next_epoch(cut)
        journal.continue_as_fork(paths, options.box, cut, epoch)
        _sync(paths.state)
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
    )


def settle(snapshot: str, paths: Paths, present_state: Path) -> None:
    """Takes from the state folder of the stopped box what must not go back: budgets that were
    spent, and its own secrets. Raises AgentboxError (exit 3).
    """
    with disk_errors(snapshot):
        present.take_budgets(paths, present_state)
        present.take_secrets(paths, present_state)
        _sync(paths.state)


def _parse_cut(snapshot: str, text: bytes) -> Cut:
    try:
        return Cut.from_wire(json.loads(text))
    except (ValueError, RecursionError, ValidationError) as error:
        raise damaged(snapshot, CUT_FILE, f"is not the record of a cut: {error}") from error


def _require_empty(snapshot: str, paths: Paths) -> None:
    if any(paths.slot(name).exists() for name in ("events", "beads", "orchestrator")):
        raise damaged(snapshot, str(paths.state), "is not empty")


def _require_room(snapshot: str, paths: Paths, size: int) -> None:
    paths.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    volume = os.statvfs(paths.state)
    free = volume.f_bavail * volume.f_frsize
    if size + SPARE_BYTES > free:
        raise no_room(snapshot, size + SPARE_BYTES, free)


def _sync(folder: Path) -> None:
    """Writes everything of the volume to the disk."""
    for directory, _folders, files in os.walk(folder):
        for path in (Path(directory), *(Path(directory) / name for name in files)):
            if path.is_symlink():
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

"""A cut of pods whose files were changed by hand, and of a disk that refuses a rename."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw
import pytest
from support.cut_slots import open_slots, plan_of_slots, staged_of
from support.staged_snapshots import AT, head_at

from agentbox.adapters.pods.local.held import HeldBodies
from agentbox.api.backups.cut import Cutter
from agentbox.backup.deep import content_faults
from agentbox.contracts.backups import Cut
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite_snapshot import StoreSnapshot
from agentbox.restoring.pods_index import check_and_index


async def cut_after(prefix: Path, change: Callable[[Path], object]) -> tuple[Cut, Path]:
    """Writes two objects, changes `notes/one` by hand, and stages a cut of it all."""
    paths = Paths(prefix)
    async with open_slots(prefix) as slots:
        await slots.pods.write("notes/one", b"first", content_type="text/plain")
        await slots.pods.write("kept", b"second")
        change(paths.slot("pods") / "objects/notes/one")
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        staged = await asyncio.to_thread(staged_of, cut, paths)
        await asyncio.to_thread(cut.close)
    return staged, paths.backup_staging / cut.id


def replaced_by_a_folder(path: Path) -> None:
    """A container of the name of an object."""
    path.unlink()
    path.mkdir()


def parent_replaced_by_a_file(path: Path) -> None:
    """A file of the name of a container."""
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"file")


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (lambda path: path.write_bytes(b"edited by hand"), 2),
        (Path.unlink, 1),
        (lambda path: os.link(path, path.parents[3] / "another-name"), 1),
        (replaced_by_a_folder, 1),
        (parent_replaced_by_a_file, 1),
    ],
    ids=["edited", "missing", "hard-linked", "folder", "below-a-file"],
)
async def test_a_pod_changed_by_hand_leaves_a_snapshot_that_restores(
    tmp_path: Path, change: Callable[[Path], object], count: int
) -> None:
    """The staged index agrees with the staged bodies, so that `verify --deep` and a restore accept
    them; what was changed is named."""
    staged, folder = await cut_after(tmp_path / "live", change)
    assert staged.changed == ("pods/notes/one",)
    assert staged.counts["pods"] == count
    assert list(content_faults(head_at(1, AT), folder)) == []
    restored = Paths(tmp_path / "restored")
    restored.state.parent.mkdir(parents=True, exist_ok=True)
    (folder / "state").rename(restored.state)
    assert check_and_index("snapshot", restored) == count
    async with open_slots(restored.prefix) as slots:
        listed = (await slots.pods.list("notes/", limit=10)).items if count == 2 else ()
        assert [meta.size for meta in listed] == [len(b"edited by hand")] * (count - 1)
        assert (await slots.pods.head("kept")).size == len(b"second")


async def test_containers_keep_the_times_of_their_last_change(tmp_path: Path) -> None:
    """Also the one of all pods, and one that is older than what is in it."""
    times = {".": 1_700_000_000_123_000_000, "notes": 1_600_000_000_456_000_000}

    def age(path: Path) -> None:
        path.write_bytes(b"first")
        for name, time in times.items():
            os.utime(path.parents[1] / name, ns=(time, time))

    _, folder = await cut_after(tmp_path / "live", age)
    objects = folder / "state/pods/objects"
    assert {name: (objects / name).stat().st_mtime_ns for name in times} == times


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_body_that_cannot_be_held_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, streamed: bool
) -> None:
    """The disk is full when the replaced body is moved: the write fails, and the object is what it
    was, during the backup and after it."""

    def full(_self: HeldBodies, _dir_fd: int, _name: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def pieces() -> AsyncIterator[bytes]:
        yield b"new"
        yield b" body"

    paths = Paths(tmp_path)
    async with open_slots(paths.prefix) as slots:
        await slots.pods.write("object", b"old body", content_type="text/plain")
        before = await slots.pods.head("object")
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        with monkeypatch.context() as patched:
            patched.setattr(HeldBodies, "take", full)
            with pytest.raises(AdapterError, match="cannot write object"):
                await slots.pods.write("object", pieces() if streamed else b"new body")
        staged = await asyncio.to_thread(staged_of, cut, paths)
        await asyncio.to_thread(cut.close)
        found = await slots.pods.read("object")
        assert b"".join([piece async for piece in found.body]) == b"old body"
        assert (found.meta.etag, found.meta.content_type) == (before.etag, "text/plain")
    assert staged.changed == ()
    objects = paths.slot("pods") / "objects"
    assert [path.name for path in objects.iterdir()] == ["object"]


async def test_a_store_that_cannot_be_closed_does_not_hold_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a cut ends what it holds even where closing its store fails."""

    def fail(_self: StoreSnapshot) -> None:
        raise apsw.IOError("disk I/O error")

    paths = Paths(tmp_path)
    async with open_slots(paths.prefix) as slots:
        cutter = Cutter(paths, slots)
        cut = await cutter.prepare(uuid7(), "", plan_of_slots())
        await cutter.take(cut)
        with monkeypatch.context() as patched:
            patched.setattr(StoreSnapshot, "close", fail)
            with pytest.raises(apsw.IOError):
                await asyncio.to_thread(cut.close)
        await slots.pods.write("object", b"one")
        await slots.pods.write("object", b"two")
        assert list((paths.slot("pods") / "held").iterdir()) == []

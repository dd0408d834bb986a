"""Backups over HTTP: made while the box works, listed, verified, sent; refused with a reason."""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pyrage
import pytest
from agentbox_testkit.wait import wait_until
from support import tables
from support.api_box import ApiBox

from agentbox.backup.archive.streams import decompressed
from agentbox.client import ApiError
from agentbox.contracts.backups import Backup
from agentbox.core import clock
from agentbox.core.files.atomic import replace_json

IDENTITY = pyrage.x25519.Identity.generate()


def box_with(folder: Path, **changes: object) -> ApiBox:
    values = {"recipients": (str(IDENTITY.to_public()),), "min_free": 1 << 20, **changes}
    return ApiBox(folder, orchestrator=False, backup=tables.backup(**values))


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiBox]:
    with box_with(tmp_path_factory.mktemp("box")) as made:
        yield made


async def made_by(box: ApiBox, tag: str = "") -> Backup:
    with box.client() as client:
        begun = client.backups.create(tag=tag)
        assert begun.state in ("staging", "writing", "created")
        await wait_until(
            lambda: client.backups.get(begun.id).state in ("created", "failed"),
            "the backup has ended",
            seconds=60,
        )
        return client.backups.get(begun.id)


def unpacked(sealed: bytes) -> dict[str, bytes]:
    """The files of a snapshot, by path."""
    archive = b"".join(decompressed_of(pyrage.decrypt(sealed, [IDENTITY])))
    return files_of(archive)


def decompressed_of(data: bytes) -> Iterator[bytes]:
    with decompressed(io.BytesIO(data)) as plain:
        while chunk := plain.read(1 << 20):
            yield chunk


def files_of(data: bytes) -> dict[str, bytes]:
    """The files of a tar."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if (body := archive.extractfile(member)) is not None:
                found[member.name] = body.read()
    return found


async def test_a_backup_is_made_listed_and_sent(box: ApiBox) -> None:
    """The archive that the box sends has what was written before, and can be opened by the identity
    alone; the journal of the box has the hash of its head."""
    with box.client() as client:
        client.beads.create_epic("kept")
        client.pods.write("notes/one", b"body of a pod", content_type="text/plain")
        client.memory.store("fact", {"is": "kept"})
        made = await made_by(box, "first")
        assert (made.state, made.tag, made.partial, made.reason) == ("created", "first", (), "")
        assert made.head is not None
        assert made.verified_at is not None
        listed = client.backups.list()
        assert [row.id for row in listed.items] == [made.id]
        sent = files_of(client.backups.archive(made.id))
        events = [
            event
            for event in client.events.read(since=-1, limit=1000).events
            if event.type.startswith("backup.")
        ]
    assert sorted(sent) == sorted([f"{made.id}.json", made.head.archive])
    assert [event.type for event in events] == ["backup.cut", "backup.created"]
    head = sent[f"{made.id}.json"]
    assert events[1].data["head_sha256"] == hashlib.sha256(head).hexdigest()
    files = unpacked(sent[made.head.archive])
    assert files["state/pods/objects/notes/one"] == b"body of a pod"
    assert json.loads(files["cut.json"])["seq"] == events[0].seq == made.head.seq
    assert {"box/plan.json", "state/beads/beads.db", "state/memory/memory.db"} <= set(files)
    assert not [path for path in files if "mgmt-key" in path or path.endswith("search.db")]
    assert list(box.paths.backup_staging.iterdir()) == []
    metrics = httpx.get(f"{box.metrics_url}/metrics").text
    assert "agentbox_backup_age_seconds " in metrics
    assert f"agentbox_backup_size_bytes {float(made.size)}" in metrics


async def test_a_damaged_archive_is_named(box: ApiBox) -> None:
    """The file is named; the snapshot counts as verified no more, and the journal says so."""
    made = await made_by(box)
    assert made.head is not None
    path = box.paths.backups / made.head.archive
    with box.client() as client:
        assert client.backups.verify(made.id).faults == ()
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        found = client.backups.verify(made.id)
        (fault,) = found.faults
        assert made.head.archive in fault
        assert found.verified_at is None
        listed = {row.id: row.faults for row in client.backups.list().items}
        assert listed[made.id] == (fault,)
        last = client.events.read(since=-1, limit=1000, types=("backup.verified",)).events[-1]
    assert (last.data["ok"], last.data["faults"]) == (False, [fault])


def test_what_cannot_be_read_by_anybody_is_not_made(tmp_path: Path) -> None:
    """And the answer says how to set it up; without room it says how much is needed."""
    with box_with(tmp_path / "none", recipients=()) as box, box.client() as client:
        with pytest.raises(ApiError) as refused:
            client.backups.create()
        assert (refused.value.status, refused.value.code) == (409, "backup-not-set-up")
        assert client.backups.list().items == ()


async def test_without_room_nothing_is_begun(tmp_path: Path) -> None:
    """507 with the bytes that are needed and free; nothing is staged."""
    with box_with(tmp_path, min_free=1 << 60) as box, box.client() as client:
        with pytest.raises(ApiError) as refused:
            client.backups.create()
        assert (refused.value.status, refused.value.code) == (507, "quota-exceeded")
        problem = refused.value.problem
        assert problem["observed"] > 1 << 60 > problem["cap"]
        (failed,) = client.backups.list().items
        assert failed.state == "failed"
        assert not box.paths.backup_staging.exists()


def test_what_a_killed_backup_left_goes_at_the_next_start(tmp_path: Path) -> None:
    """Staging is emptied; snapshots stay."""
    box = box_with(tmp_path)
    left = box.paths.backup_staging / "0190aaaa-0000-7000-8000-000000000000"
    left.mkdir(parents=True)
    (left / "state").write_bytes(b"half of a copy")
    with box:
        deadline = time.monotonic() + 20
        while left.exists():
            assert time.monotonic() < deadline, "it is removed"
            time.sleep(0.05)


def test_a_run_that_was_missed_is_made_once_after_the_start(tmp_path: Path) -> None:
    """The last attempt was a week ago; the schedule of every day is made up for once."""
    box = box_with(tmp_path, schedule="0 3 * * *")
    week_ago = clock.to_wire(clock.now() - timedelta(days=7))
    replace_json(box.paths.backup_record, {"attempted_at": week_ago})
    with box, box.client() as client:
        deadline = time.monotonic() + 60
        while [row.state for row in client.backups.list().items] != ["created"]:
            assert time.monotonic() < deadline, client.backups.list()
            time.sleep(0.1)
        listed = client.backups.list()
        assert listed.items[0].tag == "scheduled"
        assert listed.next_at is not None
        assert listed.next_at > clock.now()
        assert listed.checked_at is not None
        (event,) = client.events.read(since=-1, types=("backup.created",)).events
        assert event.data["by"] == "urn:agentbox:backup.schedule"

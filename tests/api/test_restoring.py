"""A restored state in a real API and agent-host: the same answers as at the cut, without what must
not come back, and a refusal of whatever is damaged."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import spec, until
from support.api_box import TOKEN, ApiBox
from support.filled_box import answers, fill
from support.restored_box import shows_what_was_restored
from support.staged_state import members_of, stage

from agentbox.adapters.events.journal.epoch import read_epoch
from agentbox.adapters.events.journal.verify import verify
from agentbox.backup.repository import OpenedMember
from agentbox.client import ApiError, BoxClient
from agentbox.contracts.backups import Cut, SnapshotMember
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.restoring import stores
from agentbox.restoring.members import staged_members
from agentbox.restoring.restore import RestoredState, RestoreOptions, make_state


@dataclass
class Staged:
    """A staging directory, and what the box answered when it was made."""

    folder: Path
    cut: Cut
    answers: dict[str, str]
    token: str
    agent: str
    process: int


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    """Of a box with something in each slot, two agents of which one runs, and a named token. The
    box keeps running."""
    prefix = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    folder = tmp_path_factory.mktemp("staged") / "one"
    with ApiBox(prefix) as box, box.client() as client:
        fill(client)
        token = client.tokens.create("reader", scopes=["beads:read"]).value
        client.agents.run_once(spec("true"))
        running = client.agents.spawn(spec("sleep", "600", restart="always"))
        agent = running.handle.agent_id
        until(lambda: client.agents.get(agent).pid is not None, 20)
        pid = client.agents.get(agent).pid
        until(lambda: "agent.started" in journal_types(client, agent), 20)
        cut = stage(box.paths, folder)
        yield Staged(folder, cut, answers(client, cut.seq), token, agent, int(pid or 0))
        client.agents.terminate(agent, running.handle.generation)
    shutil.rmtree(prefix)


def journal_types(client: BoxClient, agent: str) -> list[str]:
    events = client.events.read(limit=1000).events
    return [event.type for event in events if event.agent_id == agent]


@pytest.fixture
def prefix() -> Iterator[Path]:
    """Where a state is restored; short, for the sockets below it."""
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def copy(staged: Staged, tmp_path: Path) -> Path:
    """The staging directory, to be damaged."""
    shutil.copytree(staged.folder, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def restore(
    folder: Path, prefix: Path, *, head: Path | None = None, **options: Any
) -> RestoredState:
    """`head`: the directory that the head of the snapshot was made of."""
    members = members_of(head or folder)
    given = RestoreOptions(snapshot="snapshot-1", box="box", members=members, **options)
    return make_state(Paths(prefix), staged_members(folder), given)


def refused(folder: Path, prefix: Path, **options: Any) -> AgentboxError:
    with pytest.raises(AgentboxError) as caught:
        restore(folder, prefix, **options)
    assert caught.value.message.startswith("cannot restore snapshot-1: ")
    assert caught.value.hint
    return caught.value


def test_answers_are_equal_byte_for_byte(staged: Staged, prefix: Path) -> None:
    """Of each slot; the journal verifies and goes on with `journal.restored`; the agent that ran is
    lost, and the process of the box that the snapshot is of still runs."""
    made = restore(staged.folder, prefix)
    assert (made.seq, made.objects, made.tokens_disabled, made.agents_ended) == (
        staged.cut.seq, 2, 1, 1,
    )  # fmt: skip
    with ApiBox(prefix) as box, box.client() as client:
        assert answers(client, staged.cut.seq) == staged.answers
        shows_what_was_restored(box, made)
        after = client.events.read(since=staged.cut.seq, limit=1).events[0]
        assert (after.type, after.data) == (
            "journal.restored",
            {"snapshot": "snapshot-1", "seq": staged.cut.seq, "epoch": made.epoch},
        )
        assert read_epoch(box.paths.slot("events")) == made.epoch > 1_700_000_000
        until(lambda: client.agents.get(staged.agent).state == "lost", 20)
        until(lambda: "agent.lost" in journal_types(client, staged.agent), 20)
        assert client.events.verify().ok
        assert client.agents.get(staged.agent).pid is None
    assert (Path("/proc") / str(staged.process)).exists()


def test_named_tokens_come_back_disabled(staged: Staged, prefix: Path) -> None:
    """One of them may have been revoked since: 401, and the list says why."""
    restore(staged.folder, prefix)
    with ApiBox(prefix, orchestrator=False) as box, box.client(staged.token) as client:
        with pytest.raises(ApiError) as caught:
            client.beads.list()
        assert caught.value.status == 401
        with box.client(TOKEN) as admin:
            assert [token.disabled for token in admin.tokens.list().items] == [True]


def test_named_tokens_are_kept_on_request(staged: Staged, prefix: Path) -> None:
    """`--keep-tokens`."""
    assert restore(staged.folder, prefix, keep_tokens=True).tokens_disabled == 0
    with ApiBox(prefix, orchestrator=False) as box, box.client(staged.token) as client:
        assert client.beads.list().items


def test_a_box_of_another_name_has_its_own_identity(copy: Path, prefix: Path) -> None:
    """Ids of beads and the journal stay; the mesh identity and every key go."""
    for name in ("state/mesh/instance", "state/secrets/mgmt-key", "state/secrets/vnc"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("secret of the other box")
    (copy / "box").mkdir()
    (copy / "box/plan.json").write_text(json.dumps({"backup": {"include": ["secrets"]}}))
    restore(copy, prefix, new_identity=True)
    paths = Paths(prefix)
    assert sorted(file.name for file in paths.state_secrets.iterdir()) == ["access.db"]
    assert not (paths.slot("mesh") / "instance").exists()
    assert verify(paths.slot("events")).ok


def test_two_restores_are_two_forks(staged: Staged, prefix: Path, tmp_path: Path) -> None:
    """A snapshot of a restored box has its epoch, and the next restore a later one."""
    first = restore(staged.folder, prefix)
    stage(Paths(prefix), tmp_path / "second", epoch=first.epoch + 1000)
    second = restore(tmp_path / "second", tmp_path / "again")
    assert second.epoch == first.epoch + 1001
    assert second.seq == first.seq + 1


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["state/beads/beads.db", "state/pods/objects/kept/a", "state/pods/index.db"]
)
def test_a_member_that_differs_from_the_head_is_named(
    copy: Path, prefix: Path, staged: Staged, name: str
) -> None:
    """Of each kind: database, body, index."""
    _flip(copy / name)
    assert f"{name}: differs from its SHA-256" in refused(copy, prefix, head=staged.folder).message


def test_a_missing_member_is_named(copy: Path, prefix: Path, staged: Staged) -> None:
    """The head names more than there is."""
    (copy / "state/memory/memory.db").unlink()
    error = refused(copy, prefix, head=staged.folder)
    assert "state/memory/memory.db: is missing" in error.message


def test_damage_that_the_head_has_too_is_named(copy: Path, prefix: Path) -> None:
    """What was damaged before it was backed up: a body, a record of the journal, a database."""
    _flip(copy / "state/pods/objects/kept/a")
    assert "state/pods/objects/kept/a: differs from its tag" in refused(copy, prefix).message


def test_a_journal_that_does_not_verify_is_named(copy: Path, prefix: Path) -> None:
    """An altered record, although the head has its hash."""
    segment = next(copy.glob("state/events/*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b'"agent.started"', b'"agent.startod"', 1))
    assert f"state/events/{segment.name}: the record was altered" in refused(copy, prefix).message


def test_a_journal_that_ends_early_is_named(copy: Path, prefix: Path, staged: Staged) -> None:
    """The journal is whole, but the record of the cut is not in it."""
    segment = next(copy.glob("state/events/*.jsonl"))
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-1]))
    error = refused(copy, prefix)
    assert f"ends at record {staged.cut.seq - 1}, the cut at {staged.cut.seq}" in error.message


def test_a_damaged_database_is_named(copy: Path, prefix: Path) -> None:
    """A page of zeros."""
    path = copy / "state/memory/memory.db"
    path.write_bytes(path.read_bytes()[:4096] + bytes(4096) + path.read_bytes()[8192:])
    assert "state/memory/memory.db" in refused(copy, prefix).message


def test_a_store_of_a_newer_release_is_refused(copy: Path, prefix: Path) -> None:
    """It has more migrations than this release knows."""
    connection = apsw.Connection(str(copy / "state/beads/beads.db"))
    connection.execute("INSERT INTO migrations VALUES (99, 'x')")
    connection.close()
    assert "its schema" in refused(copy, prefix).message


def test_a_newer_release_is_named(copy: Path, prefix: Path, staged: Staged) -> None:
    """By the record of the cut."""
    wire = {**staged.cut.to_wire(), "release": "99.1.0"}
    (copy / "cut.json").write_text(json.dumps(wire))
    error = refused(copy, prefix)
    assert "it is of agentbox 99.1.0" in error.message
    assert error.exit_code == ExitCode.BAD


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        ("state/../../outside", "file", "is not a path below a volume"),
        ("/etc/passwd", "file", "is not a path below a volume"),
        ("state//x", "file", "is not a path below a volume"),
        ("elsewhere/x", "file", "belongs to no volume of a box"),
        ("state/link", "link", "is a link, which this volume never has"),
        ("branches/way/file", "file", "is below what is not a folder"),
        ("branches/way", "file", "is there twice"),
    ],
)
def test_no_member_leaves_its_volume(
    staged: Staged, prefix: Path, path: str, kind: Any, reason: str
) -> None:
    """Also not by way of a link that an agent made in its branch."""
    outside = prefix / "outside"
    outside.mkdir()
    members = [
        OpenedMember("branches/way", "link", 0o777, 0, target=str(outside)),
        OpenedMember(path, kind, 0o600, 0, target=str(outside)),
    ]
    options = RestoreOptions(snapshot="snapshot-1", box="box")
    with pytest.raises(AgentboxError, match=reason):
        make_state(Paths(prefix / "box"), chain(members, staged_members(staged.folder)), options)
    assert list(outside.iterdir()) == []


def test_too_little_room_is_said_before_anything_is_written(staged: Staged, prefix: Path) -> None:
    """Exit 3."""
    huge = SnapshotMember(path="state/x", size=1 << 60, sha256="0" * 64)
    options = RestoreOptions(snapshot="snapshot-1", box="box", members=(huge,))
    with pytest.raises(AgentboxError, match="it needs") as caught:
        make_state(Paths(prefix), staged_members(staged.folder), options)
    assert caught.value.exit_code == ExitCode.PREREQUISITE
    assert list(Paths(prefix).state.iterdir()) == []


def test_a_state_that_is_not_empty_is_left_alone(staged: Staged, prefix: Path) -> None:
    """It may be that of a box."""
    restore(staged.folder, prefix)
    assert "is not empty" in refused(staged.folder, prefix).message


def test_every_store_of_the_box_is_known(staged: Staged) -> None:
    """Whatever has migrations is migrated; the search index is made anew."""
    found = {
        str(path.relative_to(staged.folder / "state"))
        for path in (staged.folder / "state").rglob("*.db")
    }
    assert {
        "beads/beads.db",
        "memory/memory.db",
        "pods/index.db",
        "orchestrator/agents.db",
    } <= found
    assert found <= set(stores.STORES)

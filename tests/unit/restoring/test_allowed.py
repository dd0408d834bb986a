"""Which members of a snapshot may come into a state."""

from contextlib import closing
from io import BytesIO
from pathlib import Path

import apsw
import pytest
from support.staged_snapshots import CUT

from agentbox import __version__
from agentbox.api.backups import parts
from agentbox.api.known_stores import STORES
from agentbox.backup.repository import OpenedMember
from agentbox.core.canonical import canonical_json
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.core.storage.migrations import migrate
from agentbox.restoring import allowed
from agentbox.restoring.members import unpack, volume_roots
from agentbox.restoring.restore import RestoreOptions, make_state
from agentbox.restoring.stores import check_and_migrate


def member(path: str, data: bytes = b"x") -> OpenedMember:
    return OpenedMember(path, "file", 0o600, 0, len(data), body=BytesIO(data))


def cut_with(**changes: object) -> OpenedMember:
    wire = {**CUT.to_wire(), "release": __version__, "seq": 0, "stores": {}, "counts": {}}
    return member("cut.json", canonical_json({**wire, **changes}))


def refused(tmp_path: Path, *members: OpenedMember) -> str:
    options = RestoreOptions(snapshot="s1", box="box")
    with pytest.raises(AgentboxError) as caught:
        make_state(Paths(tmp_path / "box"), members, options)
    return caught.value.message


def test_the_trees_are_those_of_a_cut() -> None:
    """What a backup takes can be restored, and no more."""
    taken = {name for names in parts._TREES.values() for name in names}
    assert {*allowed.TREES, allowed.SECRETS} == taken
    stores = {name for names in parts._STORES.values() for name in names}
    assert stores <= STORES.keys()


@pytest.mark.parametrize(
    "path",
    [
        "state/boot",
        "state/beads/other.db",
        "state/beads/beads.db-wal",
        "state/orchestrator/x.db",
        "state/gateway/routes.json",
        "state/events/other.db",
        "state/secrets/mgmt-key",
        "state/backups/s1.json",
    ],
)
def test_other_members_are_refused(tmp_path: Path, path: str) -> None:
    """Files that no cut stages; a secret of a snapshot that takes none."""
    said = refused(tmp_path, cut_with(), member(path))
    assert f"{path}: is not what a backup takes of a box" in said


def test_secrets_come_with_a_plan_that_takes_them(tmp_path: Path) -> None:
    """`backup.include` of the plan in the snapshot."""
    plan = member("box/plan.json", b'{"backup": {"include": ["secrets"]}}')
    paths = Paths(tmp_path)
    unpack("s1", [plan, cut_with(), member("state/secrets/vnc")], volume_roots(paths), None)
    assert (paths.state_secrets / "vnc").is_file()


@pytest.mark.parametrize("store", ["state/beads/beads.db", "external/memory"])
def test_a_store_of_the_cut_that_is_missing_is_named(tmp_path: Path, store: str) -> None:
    """A plain tar without it has no head that would say so."""
    said = refused(tmp_path, cut_with(stores={store: 1}))
    assert f"{store}: is missing" in said


def database(path: Path, name: str, sql: str = "") -> bytes:
    with closing(apsw.Connection(str(path))) as connection:
        STORES[name].prepare(connection)
        migrate(connection, name, STORES[name].migrations)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(sql)
    return path.read_bytes()


def test_a_store_with_fewer_rows_is_named(tmp_path: Path) -> None:
    """It is another store than at the cut."""
    data = database(tmp_path / "made", "beads/beads.db")
    store = "state/beads/beads.db"
    said = refused(tmp_path, cut_with(stores={store: 1}, counts={"beads": 2}), member(store, data))
    assert f"{store}: has 0 rows, and 2 at the cut" in said


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("CREATE VIEW more AS SELECT 1", "the view 'more'"),
        (
            "CREATE TRIGGER t AFTER INSERT ON tokens BEGIN SELECT 1; END",
            "the trigger 't'",
        ),
    ],
)
def test_no_code_comes_in_a_store(tmp_path: Path, sql: str, what: str) -> None:
    """A trigger would run when the box writes."""
    paths = Paths(tmp_path / "box")
    (paths.state / "secrets").mkdir(parents=True)
    database(paths.state / "secrets/access.db", "secrets/access.db", sql)
    with pytest.raises(AgentboxError, match=what):
        check_and_migrate("s1", paths)


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_this_release_has_no_other_code(tmp_path: Path, name: str) -> None:
    """At each of its migrations."""
    for number in range(len(STORES[name].migrations) + 1):
        paths = Paths(tmp_path / str(number))
        (paths.state / name).parent.mkdir(parents=True)
        with closing(apsw.Connection(str(paths.state / name))) as connection:
            STORES[name].prepare(connection)
            migrate(connection, name, STORES[name].migrations[:number])
        check_and_migrate("s1", paths)


def test_without_a_head_the_room_is_a_bound(tmp_path: Path) -> None:
    """Nothing says before how much it is; the disk is not filled."""
    members = [cut_with(), member("state/tasks/a", bytes(900)), member("state/tasks/b", bytes(900))]
    with pytest.raises(AgentboxError, match="it needs") as caught:
        unpack("s1", members, volume_roots(Paths(tmp_path)), None, room=1500)
    assert caught.value.exit_code == ExitCode.PREREQUISITE


@pytest.mark.parametrize("used", ["state/tasks/a", "branches/a/b"])
def test_a_volume_with_content_is_refused(tmp_path: Path, used: str) -> None:
    """Branches too."""
    paths = Paths(tmp_path / "box")
    volume, _, name = used.partition("/")
    file = volume_roots(paths)[volume] / name
    file.parent.mkdir(parents=True)
    file.touch()
    assert "is not empty" in refused(tmp_path, cut_with())

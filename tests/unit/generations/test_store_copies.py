"""Rollback copies of stores: made, put back, and what is refused."""

import os
from pathlib import Path

import apsw
import pytest

from agentbox.api.store_copies import copies_folder, copy, discard, restore
from agentbox.api.stores import moving, read_stores
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths

STORES = ("beads/beads.db", "memory/memory.db")
_TABLES = {"beads/beads.db": "beads", "memory/memory.db": "entries"}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Two stores with one row each, and the record that detects a lost store."""
    made = Paths(tmp_path)
    for name in STORES:
        (made.state / name).parent.mkdir(parents=True)
        run(made, name, f"CREATE TABLE {_TABLES[name]} (x, expires_at)")
        run(made, name, "CREATE TABLE migrations (number INTEGER)")
        add(made, name)
    (made.state / "stores").mkdir()
    (made.state / "stores" / "beads.json").write_text("{}")
    return made


def run(paths: Paths, name: str, statement: str) -> None:
    connection = apsw.Connection(str(paths.state / name))
    connection.execute(statement)
    connection.close()


def add(paths: Paths, name: str) -> None:
    run(paths, name, f"INSERT INTO {_TABLES[name]} VALUES (1, NULL)")


def rows(paths: Paths) -> list[int | None]:
    found = read_stores(paths)
    return [found[name].rows for name in STORES]


def test_what_was_copied_comes_back(paths: Paths) -> None:
    """What a new release left beside a store goes."""
    made = copy(paths, 3, STORES)
    assert [row["name"] for row in made] == [*STORES, "stores/beads.json"]
    for name in STORES:
        add(paths, name)
    (paths.state / "beads/beads.db-wal").write_bytes(b"of the new release")
    restore(paths, 3, made)
    assert rows(paths) == [1, 1]
    assert not (paths.state / "beads/beads.db-wal").exists()


def test_entries_that_expire_are_not_counted(paths: Paths) -> None:
    """They may go between two looks, and nobody lost them."""
    run(paths, STORES[1], "INSERT INTO entries VALUES (2, 1)")
    run(paths, STORES[1], "INSERT INTO entries VALUES (3, 99999999999999)")
    assert rows(paths) == [1, 1]


def test_a_restore_that_was_interrupted_is_finished(paths: Paths) -> None:
    """The first store is in place already, as after a kill between two renames: the marker of that
    call says so."""
    made = copy(paths, 3, STORES)
    for name in STORES:
        add(paths, name)
    (copies_folder(paths, 3) / "restoring").touch()
    (copies_folder(paths, 3) / STORES[0]).rename(paths.state / STORES[0])
    restore(paths, 3, made)
    restore(paths, 3, made)
    assert rows(paths) == [1, 1]


def test_a_damaged_copy_changes_nothing(paths: Paths) -> None:
    """All copies are checked before the first is renamed."""
    made = copy(paths, 3, STORES)
    for name in STORES:
        add(paths, name)
    damaged = copies_folder(paths, 3) / STORES[1]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(AgentboxError, match=r"memory\.db"):
        restore(paths, 3, made)
    assert rows(paths) == [2, 2]


def test_copies_that_are_gone_are_not_taken_for_restored(paths: Paths) -> None:
    """Without the marker of a call that was interrupted, a missing copy is an error."""
    made = copy(paths, 3, STORES)
    add(paths, STORES[0])
    (copies_folder(paths, 3) / STORES[0]).unlink()
    with pytest.raises(AgentboxError, match="damaged or missing"):
        restore(paths, 3, made)
    discard(paths, 3)
    with pytest.raises(AgentboxError, match="damaged or missing"):
        restore(paths, 3, made)
    assert rows(paths) == [2, 1]


def test_room_is_asked_first(paths: Paths) -> None:
    """A store that is larger than what is free (a sparse file) is not copied."""
    free = os.statvfs(paths.state)
    with (paths.state / STORES[0]).open("r+b") as stream:
        stream.truncate(free.f_bavail * free.f_frsize + 1)
    with pytest.raises(AgentboxError, match="bytes are needed"):
        copy(paths, 3, STORES)
    assert not copies_folder(paths, 3).exists()


def test_copies_are_discarded(paths: Paths) -> None:
    """Also for the second time."""
    copy(paths, 3, STORES)
    discard(paths, 3)
    discard(paths, 3)
    assert not copies_folder(paths, 3).exists()


def test_only_stores_whose_number_changes_move() -> None:
    """A new store is made anew, one that a release does not know stays."""
    current = {"a": 1, "b": 2, "gone": 3}
    assert moving(current, {"a": 2, "b": 2, "new": 1}) == ["a"]

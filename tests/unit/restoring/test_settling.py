"""What the stopped box knows better than its snapshot."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.storage.migrations import migrate
from agentbox.gateway.llm import ledger
from agentbox.restoring.present import BUDGETS
from agentbox.restoring.restore import settle

Account = tuple[str, float, int, int, int]  # name, since, tokens, calls, cost


def write(state: Path, accounts: list[Account], calls: dict[str, int], *, newest: int = 2) -> None:
    """`budgets.db` with these accounts and calls (id: cost), as release `newest` had it."""
    (state / BUDGETS).parent.mkdir(parents=True, exist_ok=True)
    with closing(apsw.Connection(str(state / BUDGETS))) as connection:
        migrate(connection, "budgets.db", ledger.MIGRATIONS[:newest])
        columns = 5 if newest == 2 else 4
        for account in accounts:
            marks = ", ".join("?" * columns)
            connection.execute(f"INSERT INTO accounts VALUES ({marks})", account[:columns])
        for call_id, cost in calls.items():
            values = (
                call_id,
                1.0,
                "a",
                "id",
                1,
                "s",
                "",
                "p",
                "m",
                1,
                1,
                0,
                0,
                "USD",
                cost,
                "*",
                "",
                0,
                "a",
            )
            connection.execute(
                f"INSERT INTO model_calls VALUES ({', '.join('?' * len(values))})", values
            )


def read(state: Path) -> tuple[list[Account], dict[str, int]]:
    with closing(apsw.Connection(str(state / BUDGETS))) as connection:
        accounts = connection.execute(
            "SELECT name, since, tokens, calls, cost FROM accounts ORDER BY name"
        ).fetchall()
        calls = connection.execute("SELECT call_id, cost FROM model_calls").fetchall()
        return accounts, dict(calls)  # type: ignore[return-value,arg-type]


@pytest.fixture
def present(tmp_path: Path) -> Path:
    return tmp_path / "present"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "new")
    made.state.mkdir(parents=True)
    return made


def test_what_was_spent_stays_spent(paths: Paths, present: Path) -> None:
    """Of one window the larger sums; a later window replaces an earlier one; accounts of either
    side stay; calls are joined by their id, the newer row of both."""
    write(
        paths.state,
        [("old", 10.0, 5, 1, 5), ("same", 10.0, 100, 3, 50), ("then", 10.0, 7, 1, 7)],
        {"both": 1, "then": 2},
    )
    write(
        present,
        [("now", 20.0, 9, 1, 9), ("old", 20.0, 2, 1, 2), ("same", 10.0, 120, 2, 60)],
        {"both": 4, "now": 3},
    )
    settle("snapshot-1", paths, present)
    accounts, calls = read(paths.state)
    assert accounts == [
        ("now", 20.0, 9, 1, 9),
        ("old", 20.0, 2, 1, 2),
        ("same", 10.0, 120, 3, 60),
        ("then", 10.0, 7, 1, 7),
    ]
    assert calls == {"both": 4, "then": 2, "now": 3}
    assert [file.name for file in paths.slot("gateway").iterdir()] == ["budgets.db"]


def test_a_window_that_is_older_now_does_not_count(paths: Paths, present: Path) -> None:
    """The snapshot may be younger than the state that it replaces."""
    write(paths.state, [("a", 20.0, 5, 1, 5)], {})
    write(present, [("a", 10.0, 500, 9, 500)], {})
    settle("snapshot-1", paths, present)
    assert read(paths.state)[0] == [("a", 20.0, 5, 1, 5)]


def test_a_snapshot_without_budgets_gets_those_of_now(paths: Paths, present: Path) -> None:
    """The box had no gateway then."""
    write(present, [("a", 20.0, 5, 1, 5)], {"x": 1})
    settle("snapshot-1", paths, present)
    assert read(paths.state) == ([("a", 20.0, 5, 1, 5)], {"x": 1})


def test_budgets_of_an_earlier_release_are_migrated_on_the_way(paths: Paths, present: Path) -> None:
    """The file of the stopped box is not changed: it may have to start again."""
    write(present, [("a", 20.0, 5, 1, 0)], {}, newest=1)
    before = (present / BUDGETS).read_bytes()
    settle("snapshot-1", paths, present)
    assert read(paths.state)[0] == [("a", 20.0, 5, 1, 0)]
    assert (present / BUDGETS).read_bytes() == before


def test_secrets_of_the_box_move_over_but_no_named_token(paths: Paths, present: Path) -> None:
    """No link is followed."""
    for state, text in ((paths.state, "then"), (present, "now")):
        (state / "secrets").mkdir(parents=True)
        for name in ("mgmt-key", "access.db"):
            (state / "secrets" / name).write_text(text)
    (present / "secrets" / "vnc").write_text("now")
    (present / "secrets" / "link").symlink_to("/etc/passwd")
    settle("snapshot-1", paths, present)
    found = {file.name: file.read_text() for file in paths.state_secrets.iterdir()}
    assert found == {"access.db": "then", "mgmt-key": "now", "vnc": "now"}


@pytest.mark.parametrize("damage", ["not a database", "newer"])
def test_a_store_that_cannot_be_read_keeps_no_box_down(
    paths: Paths, present: Path, damage: str
) -> None:
    """The budgets of the snapshot stay, and the answer says why; secrets move over."""
    write(paths.state, [("a", 10.0, 5, 1, 5)], {})
    write(present, [("a", 10.0, 9, 1, 9)], {})
    if damage == "newer":
        with closing(apsw.Connection(str(present / BUDGETS))) as connection:
            connection.execute("INSERT INTO migrations VALUES (99, 'x')")
    else:
        (present / BUDGETS).write_bytes(b"x" * 8192)
    (present / "secrets").mkdir()
    (present / "secrets" / "vnc").write_text("now")
    said = settle("snapshot-1", paths, present)
    assert said.startswith("gateway/budgets.db of the stopped box cannot be read: ")
    assert read(paths.state)[0] == [("a", 10.0, 5, 1, 5)]
    assert (paths.state_secrets / "vnc").read_text() == "now"
    assert [file.name for file in paths.slot("gateway").iterdir()] == ["budgets.db"]


def test_no_error_after_the_stop_says_that_the_box_was_not_touched(
    paths: Paths, present: Path
) -> None:
    """It was stopped."""
    (present / "secrets").mkdir(parents=True)
    (present / "secrets" / "vnc").write_text("now")
    (paths.state / "secrets").write_text("not a folder")
    with pytest.raises(AgentboxError) as caught:
        settle("snapshot-1", paths, present)
    assert "not touched" not in caught.value.hint

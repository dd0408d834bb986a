"""A box whose table of agents is damaged does not start, says what is damaged and what to do, and touches nothing."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import sh
from test_supervised import TOKEN, Sealed, plan

from agentbox.engine.waiting import failure, fix
from agentbox.testing.prefix_box import PrefixBox


def _no_database(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def _bad_row(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE agents SET row = '{'")


@pytest.mark.parametrize(
    ("damage", "said"), [(_no_database, "the file is no database"), (_bad_row, "the row of agent")]
)
def test_a_damaged_table_is_named(damage: Callable[[Path], None], said: str) -> None:
    """In the verdict that `up` prints, with the file to put back; the file is as it was."""
    with PrefixBox() as box:
        sealed = Sealed(box, box.install(plan()))
        sealed.start()
        sealed.client.agents.run_once(sh("exit 0"))
        sealed.client.close()
        box.stop()
        table = box.paths.slot("orchestrator") / "agents.db"
        damage(table)
        before = table.read_bytes()
        box.start({"BOX_TOKEN": TOKEN})
        box.until(lambda: failure(box.log().splitlines()), 60, "the boot fails")
        why = failure(box.log().splitlines())
        assert "cannot use agents.db" in why
        assert said in why
        assert str(table) in fix(box.log().splitlines())
        assert table.read_bytes() == before

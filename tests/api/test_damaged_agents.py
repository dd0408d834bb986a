"""A box whose table of agents is damaged reports the damage and changes nothing: without the file
it does not start, without a row it is degraded."""

import sqlite3

from helpers import sh, until
from support.prefix_box import PrefixBox
from test_supervised import TOKEN, Sealed, plan

from agentbox.host.engines.readiness import boot_failure, suggested_fix


def test_a_damaged_table_is_named() -> None:
    """In the verdict that `up` prints, with the file to put back; the file is as it was."""
    with PrefixBox() as box:
        sealed = Sealed(box, box.install(plan()))
        sealed.start()
        sealed.client.agents.run_once(sh("exit 0"))
        sealed.client.close()
        box.stop()
        table = box.paths.slot("orchestrator") / "agents.db"
        table.write_bytes(b"x" * table.stat().st_size)
        before = table.read_bytes()
        box.start({"BOX_TOKEN": TOKEN})
        box.wait_until(lambda: boot_failure(box.log().splitlines()), 60, "the boot fails")
        why = boot_failure(box.log().splitlines())
        assert "cannot use agents.db" in why
        assert "the file is not a database" in why
        assert str(table) in suggested_fix(box.log().splitlines())
        assert table.read_bytes() == before


def test_a_damaged_row_is_named_and_the_rest_is_there() -> None:
    """The box starts, lists the other agents, starts new ones, and reports which slot is degraded
    and why."""
    with PrefixBox() as box:
        sealed = Sealed(box, box.install(plan()))
        sealed.start()
        for _ in range(3):
            sealed.client.agents.run_once(sh("exit 0"))
        first, second, third = (one.agent_id for one in sealed.client.agents.list().items)
        box.stop()
        with sqlite3.connect(box.paths.slot("orchestrator") / "agents.db") as db:
            db.execute("UPDATE agents SET row = '{' WHERE agent_id = ?", (second,))
        sealed.start()
        assert [one.agent_id for one in sealed.client.agents.list().items] == [first, third]
        until(lambda: sealed.client.health().adapters["orchestrator"].state == "degraded")
        assert (
            "unreadable rows of agents.db" in sealed.client.health().adapters["orchestrator"].detail
        )
        assert f"cannot read {second} of agents: its row is damaged" in box.log()
        assert sealed.client.agents.run_once(sh("exit 0")).exit.code == 0
        sealed.client.close()

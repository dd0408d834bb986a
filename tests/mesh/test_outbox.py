"""The outbox of results, on a real store of beads."""

import contextlib
import sqlite3
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from agentbox_testkit.local_store import LocalStore

from agentbox.contracts.beads import BeadSpec
from agentbox.core.slot_errors import AdapterError, NotFound, SlotUnavailable
from agentbox.mesh.outbox.outbox import Outbox


class Kept:
    """What the outbox logs."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.orphans: dict[str, Any] = {}

    async def result_stored(self, ref: str) -> None:
        self.left.append(ref)

    async def result_refused(self, ref: str, result: Any) -> None:
        self.orphans[ref] = result


Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def reported() -> Told:
    return []


@pytest_asyncio.fixture
async def outbox(tmp_path: Path, reported: Told) -> AsyncIterator[Outbox]:
    made = Outbox(
        tmp_path / "mesh",
        lambda kind, data: reported.append((kind, data)),
        max_items=10,
        max_bytes=4096,
    )
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def beads(tmp_path: Path) -> AsyncIterator[Any]:
    store = LocalStore("beads", "local-sqlite", tmp_path)
    yield await store.open()
    await store.close_all()


async def claimed(beads: Any, count: int) -> list[tuple[str, str]]:
    """Beads and the leases on them."""
    epic, _ = await beads.create_epic(BeadSpec(title="e", creator="c"))
    result = []
    for _ in range(count):
        task, _ = await beads.create_child(epic.id, BeadSpec(title="t", creator="c"))
        lease = str(uuid.uuid4())
        await beads.claim(task.id, "w", lease_id=lease)
        result.append((task.id, lease))
    return result


async def test_F09_results_go_out_in_order_after_a_restart(
    outbox: Outbox, beads: Any, reported: Told, tmp_path: Path
) -> None:
    """Each once; nothing remains."""
    held = await claimed(beads, 5)
    for number, (bead, lease) in enumerate(held):
        await outbox.put(
            "close",
            bead,
            lease,
            f"ref{number}",
            {"outcome": "done", "note": "", "result": {"n": number}},
        )
    await outbox.close()
    await outbox.open()
    assert (outbox.depth, outbox.refs) == (5, {f"ref{n}" for n in range(5)})
    stored = Kept()
    await outbox.flush(beads, stored)
    assert stored.left == [f"ref{n}" for n in range(5)]
    assert [(await beads.show(bead)).result for bead, _ in held] == [{"n": n} for n in range(5)]
    assert (outbox.depth, outbox.size, outbox.oldest_s) == (0, 0, 0.0)
    await outbox.flush(beads, stored)
    assert len(stored.left) == 5


async def test_F09_a_store_that_goes_away_keeps_what_is_left(outbox: Outbox, beads: Any) -> None:
    """The error is raised, and the rest waits."""
    bead, lease = (await claimed(beads, 1))[0]
    await outbox.put("release", bead, lease, "r", {"note": "down"})
    await beads.close()
    with pytest.raises(AdapterError):
        await outbox.flush(beads, Kept())
    assert outbox.depth == 1


async def test_F10_a_lost_lease_makes_an_orphan(outbox: Outbox, beads: Any, reported: Told) -> None:
    """The other box's result stays; ours is reported, stored in the outbox, and not sent again."""
    (bead, lease), (other, its) = await claimed(beads, 2)
    await outbox.put(
        "close", bead, str(uuid.uuid4()), "lost", {"outcome": "done", "note": "", "result": "ours"}
    )
    await outbox.put(
        "close", other, its, "fine", {"outcome": "failed", "note": "n", "result": None}
    )
    await beads.close_bead(bead, lease_id=lease, result="theirs")
    stored = Kept()
    await outbox.flush(beads, stored)
    assert (await beads.show(bead)).result == "theirs"
    assert (stored.left, list(stored.orphans)) == (["fine"], ["lost"])
    assert stored.orphans["lost"]["result"] == "ours"
    kind, data = reported[-1]
    assert (kind, data["bead"], data["outcome"], len(data["digest"])) == (
        "bead.result.orphaned",
        bead,
        "done",
        64,
    )
    assert outbox.depth == 0


async def test_F09_the_outbox_has_bounds(outbox: Outbox, reported: Told) -> None:
    """One warning at four fifths; at the limit the typed error, by number and by size; stored
    results stay."""
    for number in range(10):
        await outbox.put("release", f"b{number}", "l", f"r{number}", {"note": ""})
        assert len(reported) == (number >= 7)
    with pytest.raises(SlotUnavailable):
        await outbox.put("release", "b", "l", "r", {"note": ""})
    for item in (await outbox.items())[:9]:
        await outbox.drop(item.id, "urn:agentbox:operator")
    with pytest.raises(SlotUnavailable):
        await outbox.put("close", "b", "l", "r", {"outcome": "done", "result": "x" * 5000})
    assert outbox.depth == 1


async def test_F12_an_operator_gives_one_up(outbox: Outbox, reported: Told, tmp_path: Path) -> None:
    """Journaled with its digest and the caller; the file has nothing of it, and no listing shows a
    lease."""
    await outbox.put("close", "b", "a-lease", "r", {"outcome": "done", "note": "", "result": None})
    item = (await outbox.items())[0]
    assert "a-lease" not in str(item.to_wire())
    assert (item.op, item.bead_id, item.outcome) == ("close", "b", "done")
    await outbox.drop(item.id, "urn:agentbox:operator")
    assert reported == [
        (
            "mesh.outbox_dropped",
            {"id": item.id, "bead": "b", "digest": item.digest, "by": "urn:agentbox:operator"},
        )
    ]
    with pytest.raises(NotFound):
        await outbox.drop(item.id, "urn:agentbox:operator")
    with sqlite3.connect(tmp_path / "mesh/outbox.db") as db:
        assert db.execute("SELECT count(*) FROM items").fetchone() == (0,)


@pytest.mark.parametrize(
    "damage", ["body = '{'", "body = '[]'", "at = 'never'", "bead = CAST(x'ff' AS TEXT)"]
)
async def test_a_damaged_result_holds_up_no_other(
    outbox: Outbox, beads: Any, tmp_path: Path, damage: str
) -> None:
    """The others are listed and sent; its row stays unchanged."""
    held = await claimed(beads, 3)
    for number, (bead, lease) in enumerate(held):
        await outbox.put("close", bead, lease, f"ref{number}", {"outcome": "done"})
    await outbox.close()
    with contextlib.closing(
        sqlite3.connect(tmp_path / "mesh/outbox.db", isolation_level=None)
    ) as db:
        db.execute(f"UPDATE items SET {damage} WHERE seq = 2")
    await outbox.open()
    assert [item.ref for item in await outbox.items()] == ["ref0", "ref2"]
    stored = Kept()
    await outbox.flush(beads, stored)
    assert (stored.left, outbox.depth) == (["ref0", "ref2"], 0)
    with contextlib.closing(sqlite3.connect(tmp_path / "mesh/outbox.db")) as db:
        assert db.execute("SELECT seq FROM items").fetchall() == [(2,)]

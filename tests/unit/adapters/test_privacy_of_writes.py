"""A planted finding, at any depth of any text field of a write, never reaches the bytes of a store."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbox.adapters.beads.contract import BeadSpec
from agentbox.adapters.errors import AdapterWriteRejected
from agentbox.adapters.events.contract import NewEvent
from agentbox.testing.contracts.beads_common import LEASE

PLANTED = "AKIA" + "QQQQWWWWEEEERRRR"
STRICT = {"enabled": True, "mode": "rules", "entities": ["secret"], "policy": {"beads": "strict", "events": "strict"}}
FILL = st.sampled_from(["", "x", "the key is ", "\n"])
TEXT = st.tuples(FILL, FILL).map(lambda around: f"{around[0]} {PLANTED} {around[1]}")
TREES = st.recursive(
    TEXT,
    lambda inner: (
        st.lists(st.one_of(inner, st.integers(-1000, 1000), st.none()), max_size=3)
        | st.dictionaries(st.one_of(st.sampled_from(["a", "b"]), TEXT), inner, max_size=3)
    ),
    max_leaves=6,
)
TINY = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def bytes_below(prefix):
    """Everything that the stores keep."""
    return b"".join(path.read_bytes() for path in sorted(Path(prefix).rglob("*")) if path.is_file())


def stored(box_type, work):
    """Runs a piece of work against fresh stores; the bytes that are left."""

    async def run(prefix):
        async with box_type(Path(prefix)).started(privacy=STRICT) as container:
            await work(container)

    with tempfile.TemporaryDirectory() as prefix:
        asyncio.run(run(prefix))
        return bytes_below(prefix)


@TINY
@given(title=TEXT, body=TEXT, tag=TEXT, data=TREES, note=TEXT, result=TREES)
def test_beads(box, title, body, tag, data, note, result):
    """create_epic, create_child, release, close_bead."""

    async def work(container):
        spec = BeadSpec(title=title, creator="c", body=body, tags=(tag,), data={"tree": data})
        epic, _ = await container.beads.create_epic(spec)
        child, _ = await container.beads.create_child(epic.id, spec)
        await container.beads.claim(child.id, "w", lease_id=LEASE)
        await container.beads.release(child.id, LEASE, note=note)
        closed = await container.beads.close_bead(child.id, note=note, result=result)
        assert "[SECRET]" in closed.title
        assert "[SECRET]" in closed.note

    found = stored(type(box), work)
    assert b"[SECRET]" in found
    assert PLANTED.encode() not in found


@TINY
@given(subject=TEXT, data=TREES)
def test_events(box, subject, data):
    """append, with several events in a call."""

    async def work(container):
        await container.events.append(
            [NewEvent(type="a", data={"tree": data}, subject=subject), NewEvent(type="b", data={})]
        )

    found = stored(type(box), work)
    assert b"[SECRET]" in found
    assert PLANTED.encode() not in found


async def test_an_identifier_that_holds_a_finding_is_refused(box):
    """strict: the dedup key of a bead; nothing is created, and the finding is in no sentence."""
    async with box.started(privacy=STRICT) as container:
        with pytest.raises(AdapterWriteRejected) as caught:
            await container.beads.create_epic(BeadSpec(title="t", creator="c", dedup_key=PLANTED))
        assert PLANTED not in caught.value.message
        assert (await container.beads.list()).items == ()
    assert PLANTED.encode() not in bytes_below(box.paths.prefix)


async def test_findings_are_counted(box):
    """agentbox_redactions_total by slot, method and class."""
    async with box.started(privacy=STRICT) as container:
        await container.beads.create_epic(BeadSpec(title=PLANTED, creator="c", data={"password": "x"}))
    assert box.metric("agentbox_redactions_total", slot="beads", method="create_epic", **{"class": "secret"}) == 2

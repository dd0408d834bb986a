"""The typed clients of beads, events, tokens and mesh, sync and async, against a real box."""

import asyncio
import inspect
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, AsyncBoxClient, BoxClient, every, every_async


async def done(found: Any) -> Any:
    """The result of a call of either client."""
    return await found if inspect.isawaitable(found) else found


@pytest_asyncio.fixture(params=[BoxClient, AsyncBoxClient])
async def client(request: pytest.FixtureRequest, box: ApiBox) -> AsyncIterator[Any]:
    """Each of the two. The waiting one blocks this test's loop, which has nothing else to do."""
    made = request.param(box.url, token=TOKEN)
    yield made
    await done(made.aclose() if isinstance(made, AsyncBoxClient) else made.close())


async def test_a_bead_goes_round(client: Any) -> None:
    """Created once, claimed, heartbeat, released, claimed again, closed; a bead that depends on it
    becomes ready."""
    key, lease = uuid.uuid4().hex, str(uuid.uuid4())
    epic, created = await done(client.beads.create_epic("an epic", request_id=key, tags=["t"]))
    assert created
    again = await done(client.beads.create_epic("an epic", request_id=key, tags=["t"]))
    assert again == (epic, False)
    first, second = [
        (await done(client.beads.create_child(epic.id, title)))[0] for title in ("a", "b")
    ]
    await done(client.beads.add_dep(second.id, first.id))
    assert [bead.id for bead in (await done(client.beads.ready(parent_id=epic.id))).items] == [
        first.id
    ]
    claim = await done(client.beads.claim_next(lease_id=lease, parent_id=epic.id))
    assert (claim.bead.id, claim.lease_id, claim.bead.status) == (first.id, lease, "claimed")
    assert (
        await done(client.beads.claim_next(lease_id=str(uuid.uuid4()), parent_id=epic.id)) is None
    )
    assert (
        await done(client.beads.heartbeat(first.id, lease, lease_s=600))
    ).expires_at > claim.expires_at
    assert (await done(client.beads.release(first.id, lease, note="later"))).status == "open"
    again = await done(client.beads.claim(first.id, lease_id=lease))
    closed = await done(client.beads.close_bead(first.id, result={"n": 1}, lease_id=again.lease_id))
    assert (closed.outcome, closed.result, (await done(client.beads.show(first.id))).status) == (
        "done",
        {"n": 1},
        "closed",
    )
    await done(client.beads.remove_dep(second.id, first.id))
    with pytest.raises(ApiError) as late:
        await done(client.beads.heartbeat(first.id, lease))
    assert (late.value.status, late.value.code) == (409, "lease-lost")


async def test_a_listing_is_read_to_its_end(client: Any) -> None:
    """Page after page, each item once."""
    epic, _ = await done(client.beads.create_epic("many"))
    made = [(await done(client.beads.create_child(epic.id, str(n))))[0].id for n in range(7)]
    if isinstance(client, AsyncBoxClient):
        found = [
            bead.id async for bead in every_async(client.beads.list, parent_id=epic.id, limit=3)
        ]
    else:
        found = [bead.id for bead in every(client.beads.list, parent_id=epic.id, limit=3)]
    assert found == sorted(made)


async def test_events_go_round(client: Any) -> None:
    """Appended, read, shown, verified, streamed from a position."""
    kind = f"round.{uuid.uuid4().hex}"
    rows = [{"type": kind, "data": {"n": n}} for n in range(3)]
    appended = await done(client.events.append(rows))
    first, last = appended.first_seq, appended.last_seq
    events = (await done(client.events.read(since=first - 1, types=(kind,)))).events
    assert [(event.seq, event.data) for event in events] == [
        (first + n, {"n": n}) for n in range(3)
    ]
    assert await done(client.events.show(str(last))) == events[-1]
    assert (await done(client.events.head()))[0] >= last
    assert (await done(client.events.verify())).ok
    stream = client.events.subscribe(since=first, types=(kind,))
    if isinstance(client, AsyncBoxClient):
        async with asyncio.timeout(10):
            assert [(await anext(stream)).seq for _ in range(2)] == [first + 1, last]
        await stream.aclose()
    else:
        assert [next(stream).seq for _ in range(2)] == [first + 1, last]
        stream.close()


async def test_the_rest(client: Any) -> None:
    """Tokens, the box's own part of the mesh, probes, what may be done with an object, the document."""
    token = await done(client.tokens.create("of-a-test", ["beads:read"], rate=5))
    assert token.value.startswith("abx_")
    assert token.id in [row.id for row in (await done(client.tokens.list())).items]
    await done(client.tokens.revoke(token.id))
    assert (await done(client.mesh.status())).mode == "standalone"
    assert (await done(client.livez())).live
    assert "PUT" in (await done(client.pods.options("x")))["allow"]
    assert (await done(client.openapi()))["openapi"] == "3.1.0"
    assert (await done(client.boot())).broken == ()
    assert (await done(client.meta())).api_versions == ("v1",)
    assert "beads" in (await done(client.health())).adapters
    assert isinstance((await done(client.list_tasks(limit=1))).items, tuple)

"""Who is asked, how often, and what a decision is good for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentbox.agents.approvals.registry import MAX_PER_HOUR, ApprovalRegistry
from agentbox.agents.approvals.request import ApprovalRequest
from agentbox.agents.registry.store import AgentStore, LifecycleEvent
from agentbox.core.slot_errors import InvalidTransition, NotFound, PermissionDenied

AGENT = ("the-agent", "worker")
WRITE = {"path": "a", "content": "b"}


class Room:
    """A book on a store of its own; somebody follows, unless a test says otherwise."""

    def __init__(self, store: AgentStore) -> None:
        self.store = store
        self.told: list[LifecycleEvent] = []
        self.book = ApprovalRegistry(store, self._tell)
        self.book.approver_count = 1

    async def _tell(self, happened: LifecycleEvent) -> None:
        self.told.append(happened)

    def ask(
        self, value: str = "pod/write", seconds: float = 20, **more: Any
    ) -> "asyncio.Task[None]":
        given = {"parameters": WRITE, "words": "", **more}
        agent = given.pop("agent", AGENT)
        return asyncio.create_task(
            self.book.request_approval(agent, "tool", value, seconds=seconds, **given)
        )

    async def waiting(self, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(30):
            while (
                len(found := [one for one in self.book.page() if one["state"] == "waiting"])
                != count
            ):
                await asyncio.sleep(0.005)
        return found

    async def tells(self, *types: str) -> None:
        """Returns once exactly these were told."""
        async with asyncio.timeout(30):
            while [one.type for one in self.told] != list(types):
                await asyncio.sleep(0.005)

    async def decide(self, approval_id: str, *, approve: bool, reason: str = "because") -> None:
        await self.book.decide(approval_id, approve=approve, reason=reason, by="urn:somebody")


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    store = AgentStore(tmp_path)
    await store.open()
    yield Room(store)
    await store.close()


async def refused(asking: "asyncio.Task[None]") -> str:
    with pytest.raises(PermissionDenied) as caught:
        await asking
    return caught.value.message


async def test_approved_for_one_use(room: Room) -> None:
    """The asker goes on; the same action asks anew; the journal has who decided what and why."""
    asking = room.ask(words="trust\x1b[2J me")
    (one,) = await room.waiting()
    assert (one["parameters"], one["words"]) == (
        '{"content": "b", "path": "a"}',
        "\u201ctrust\\x1b[2J me\u201d",
    )
    await room.decide(one["id"], approve=True)
    await asking
    assert room.book.get(one["id"]).state == "used"
    again = room.ask()
    assert (await room.waiting())[0]["id"] != one["id"]
    await room.tells("approval.requested", "approval.decided", "approval.requested")
    again.cancel()
    decided = room.told[1].data
    assert (decided["by"], decided["verdict"], decided["reason"]) == (
        "urn:somebody",
        "approve",
        "because",
    )


async def test_decided_once(room: Room) -> None:
    """A second verdict is a conflict, an unknown id is not found."""
    asking = room.ask()
    (one,) = await room.waiting()
    await room.decide(one["id"], approve=False)
    assert "because" in await refused(asking)
    with pytest.raises(InvalidTransition):
        await room.decide(one["id"], approve=True)
    with pytest.raises(NotFound):
        await room.decide("nothing", approve=True)


async def test_a_denial_without_a_reason_is_told_as_a_denial(room: Room) -> None:
    """Nothing was approved, so nothing says so; all that joined hear the same."""
    asking = [room.ask() for _ in range(2)]
    await room.decide((await room.waiting())[0]["id"], approve=False, reason="")
    assert {await refused(one) for one in asking} == {"it needs an approval: it was denied"}


async def test_what_was_used_is_told_as_used(room: Room) -> None:
    """Of two equal ones that one approval was for, the second does not hear the words that approved the first."""
    asking = [room.ask() for _ in range(2)]
    await room.decide((await room.waiting())[0]["id"], approve=True, reason="go on")
    (error,) = [
        one for one in await asyncio.gather(*asking, return_exceptions=True) if one is not None
    ]
    assert str(error) == "it needs an approval: an equal one was just approved, and used"


async def test_denied_stays_denied(room: Room) -> None:
    """Equal ones are denied unasked; other parameters, and another agent, are asked for."""
    asking = room.ask()
    await room.decide((await room.waiting())[0]["id"], approve=False)
    await refused(asking)
    assert "less than 10 minutes" in await refused(room.ask())
    other, stranger = room.ask(parameters={"path": "b"}), room.ask(agent=("another", "worker"))
    await room.waiting(2)
    for one in (other, stranger):
        one.cancel()


async def test_nobody_decides(room: Room) -> None:
    """After its time it is denied, by the box; another agent's request waits on, and is answered."""
    beside = room.ask(agent=("another", "worker"))
    await room.waiting()
    assert "nobody decided in time" in await refused(room.ask(seconds=0.1))
    assert room.told[-1].data["by"] == "urn:agentbox:box"
    await room.decide((await room.waiting())[0]["id"], approve=True)
    await beside


async def test_nobody_is_there(room: Room) -> None:
    """Denied at once, and told; as soon as somebody is there, it may be asked again."""
    room.book.approver_count = 0
    assert "nobody who may decide" in await refused(room.ask())
    room.book.approver_count = 1
    asking = room.ask()
    await room.decide((await room.waiting())[0]["id"], approve=True)
    await asking


async def test_three_wait_and_equal_ones_join(room: Room) -> None:
    """A fourth action is denied, an equal one joins; one approval lets one of two equal ones pass."""
    first = [room.ask() for _ in range(2)]
    await room.waiting(1)
    others = [room.ask(value=f"pod/{name}") for name in ("patch", "delete")]
    found = await room.waiting(3)
    assert "3 of this agent wait" in await refused(room.ask(value="pod/read"))
    await room.decide(next(one["id"] for one in found if one["value"] == "pod/write"), approve=True)
    done = await asyncio.gather(*first, return_exceptions=True)
    assert sorted(type(one) for one in done if one is not None) == [PermissionDenied]
    for one in others:
        one.cancel()


async def test_ten_an_hour(room: Room) -> None:
    """Past that the agent is denied unasked; others are not."""
    for number in range(MAX_PER_HOUR):
        asking = room.ask(value=f"tool/{number}")
        await room.decide((await room.waiting())[0]["id"], approve=True)
        await asking
    assert "10 times within the hour" in await refused(room.ask())
    other = room.ask(agent=("another", "worker"))
    await room.waiting()
    other.cancel()


async def test_who_starts_in_the_place_of_another_has_asked_already(room: Room) -> None:
    """A parent that starts one child after the other wears nobody down: denials and numbers are those of the earlier ones. A
    sibling that lives beside it, and another family's agent of that name, ask for themselves."""
    dead: set[str] = set()
    room.book = ApprovalRegistry(room.store, room._tell, lambda agent_id: agent_id not in dead)
    room.book.approver_count = 1
    asking = room.ask(agent=("child-0", "worker"), family="parent")
    await room.decide((await room.waiting())[0]["id"], approve=False)
    await refused(asking)
    beside = room.ask(agent=("child-1", "worker"), family="parent")
    await room.decide((await room.waiting())[0]["id"], approve=True)
    await beside
    for number in range(MAX_PER_HOUR - 1):
        dead.add(f"child-{number}")
        agent = (f"child-{number + 1}", "worker")
        assert "less than 10 minutes" in await refused(room.ask(agent=agent, family="parent"))
        asking = room.ask(value=f"tool/{number}", agent=agent, family="parent")
        if number == MAX_PER_HOUR - 2:
            assert "10 times within the hour" in await refused(asking)
            break
        await room.decide((await room.waiting())[0]["id"], approve=True)
        await asking
    other = room.ask(agent=("stranger", "worker"), family="another")
    await room.waiting()
    other.cancel()


async def test_what_cannot_be_shown_is_denied(room: Room) -> None:
    """Nobody approves what they cannot see whole."""
    assert "a person is shown" in await refused(room.ask(parameters={"content": "x" * 20_000}))


async def test_kept_across_restarts(room: Room, tmp_path: Path) -> None:
    """What waited still waits, may be decided while nobody asks, and is then good for the next one, once."""
    asking = room.ask()
    (one,) = await room.waiting()
    await room.tells("approval.requested")
    asking.cancel()
    later = Room(room.store)
    await later.book.load()
    await later.waiting()
    await later.decide(one["id"], approve=True)
    await later.ask()
    last = Room(room.store)
    await last.book.load()
    assert last.book.get(one["id"]).state == "used"
    asks = last.ask()
    await last.waiting()
    asks.cancel()


async def test_asked_ahead(room: Room) -> None:
    """With `hold` the approval is for the action that follows."""
    ahead = room.ask(hold=True)
    await room.decide((await room.waiting())[0]["id"], approve=True)
    await ahead
    await room.ask()
    asks = room.ask()
    await room.waiting()
    asks.cancel()


def test_a_row_is_read_back() -> None:
    """With the same digest."""
    made = ApprovalRequest(
        id="1", agent_id="a", name="n", kind="tool", value="v", parameters=WRITE, asked=1, expires=2
    )
    assert ApprovalRequest.from_row(made.to_row()) == made

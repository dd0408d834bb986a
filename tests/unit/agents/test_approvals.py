"""When an approval is requested, how often, and what a decision applies to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentbox.agents.approvals.registry import MAX_PER_HOUR, ApprovalRegistry
from agentbox.agents.approvals.request import ApprovalRequest
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.store import AgentStore
from agentbox.core.slot_errors import InvalidTransition, NotFound, PermissionDenied

AGENT = ("the-agent", "worker")
WRITE = {"path": "a", "content": "b"}


class ApprovalScenario:
    """A registry with a store of its own; an approver is connected, unless a test disconnects it."""

    def __init__(self, store: AgentStore) -> None:
        self.store = store
        self.events: list[LifecycleEvent] = []
        self.registry = ApprovalRegistry(store, self._record_event)
        self.registry.approver_count = 1

    async def _record_event(self, happened: LifecycleEvent) -> None:
        self.events.append(happened)

    def request(
        self, value: str = "pod/write", seconds: float = 20, **more: Any
    ) -> "asyncio.Task[None]":
        given = {"parameters": WRITE, "words": "", **more}
        agent = given.pop("agent", AGENT)
        return asyncio.create_task(
            self.registry.request_approval(agent, "tool", value, seconds=seconds, **given)
        )

    async def waiting(self, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(30):
            while (
                len(found := [one for one in self.registry.page() if one["state"] == "waiting"])
                != count
            ):
                await asyncio.sleep(0.005)
        return found

    async def expect_events(self, *types: str) -> None:
        """Returns once exactly these events were reported."""
        async with asyncio.timeout(30):
            while [one.type for one in self.events] != list(types):
                await asyncio.sleep(0.005)

    async def decide(self, approval_id: str, *, approve: bool, reason: str = "because") -> None:
        await self.registry.decide(approval_id, approve=approve, reason=reason, by="urn:somebody")


@pytest.fixture
async def scenario(tmp_path: Path) -> AsyncIterator[ApprovalScenario]:
    store = AgentStore(tmp_path)
    await store.open()
    yield ApprovalScenario(store)
    await store.close()


async def refused(asking: "asyncio.Task[None]") -> str:
    with pytest.raises(PermissionDenied) as caught:
        await asking
    return caught.value.message


async def test_approved_for_one_use(scenario: ApprovalScenario) -> None:
    """The requester continues; the same action is a new request; the journal has who decided what
    and why."""
    asking = scenario.request(words="trust\x1b[2J me")
    (one,) = await scenario.waiting()
    assert (one["parameters"], one["words"]) == (
        '{"content": "b", "path": "a"}',
        "\u201ctrust\\x1b[2J me\u201d",
    )
    await scenario.decide(one["id"], approve=True)
    await asking
    assert scenario.registry.get(one["id"]).state == "used"
    again = scenario.request()
    assert (await scenario.waiting())[0]["id"] != one["id"]
    await scenario.expect_events("approval.requested", "approval.decided", "approval.requested")
    again.cancel()
    decided = scenario.events[1].data
    assert (decided["by"], decided["verdict"], decided["reason"]) == (
        "urn:somebody",
        "approve",
        "because",
    )


async def test_decided_once(scenario: ApprovalScenario) -> None:
    """A second verdict is a conflict, an unknown id is not found."""
    asking = scenario.request()
    (one,) = await scenario.waiting()
    await scenario.decide(one["id"], approve=False)
    assert "because" in await refused(asking)
    with pytest.raises(InvalidTransition):
        await scenario.decide(one["id"], approve=True)
    with pytest.raises(NotFound):
        await scenario.decide("nothing", approve=True)


async def test_a_denial_without_a_reason_is_told_as_a_denial(scenario: ApprovalScenario) -> None:
    """Nothing was approved, so no event says so; all waiting requests get the same answer."""
    asking = [scenario.request() for _ in range(2)]
    await scenario.decide((await scenario.waiting())[0]["id"], approve=False, reason="")
    assert {await refused(one) for one in asking} == {"approval required: the request was denied"}


async def test_what_was_used_is_told_as_used(scenario: ApprovalScenario) -> None:
    """Of two equal ones that share one approval, the second does not get the comment of the first."""
    asking = [scenario.request() for _ in range(2)]
    await scenario.decide((await scenario.waiting())[0]["id"], approve=True, reason="go on")
    (error,) = [
        one for one in await asyncio.gather(*asking, return_exceptions=True) if one is not None
    ]
    assert str(error) == "approval required: an identical request was just approved and used"


async def test_denied_stays_denied(scenario: ApprovalScenario) -> None:
    """Equal ones are denied without a request; other parameters, and another agent, are requested."""
    asking = scenario.request()
    await scenario.decide((await scenario.waiting())[0]["id"], approve=False)
    await refused(asking)
    assert "less than 10 minutes" in await refused(scenario.request())
    other, stranger = (
        scenario.request(parameters={"path": "b"}),
        scenario.request(agent=("another", "worker")),
    )
    await scenario.waiting(2)
    for one in (other, stranger):
        one.cancel()


@pytest.mark.limit("approval_timeout_seconds")
async def test_nobody_decides(scenario: ApprovalScenario) -> None:
    """After its time it is denied, by the box; another agent's request waits on, and is answered."""
    beside = scenario.request(agent=("another", "worker"))
    await scenario.waiting()
    assert "the approval timed out" in await refused(scenario.request(seconds=0.1))
    assert scenario.events[-1].data["by"] == "urn:agentbox:box"
    await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
    await beside


async def test_nobody_is_there(scenario: ApprovalScenario) -> None:
    """Denied at once, and reported; as soon as an approver is connected, it may be requested again."""
    scenario.registry.approver_count = 0
    assert "no approver is connected" in await refused(scenario.request())
    scenario.registry.approver_count = 1
    asking = scenario.request()
    await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
    await asking


async def test_three_wait_and_equal_ones_join(scenario: ApprovalScenario) -> None:
    """A fourth action is denied, an equal one joins; one approval lets one of two equal ones pass."""
    first = [scenario.request() for _ in range(2)]
    await scenario.waiting(1)
    others = [scenario.request(value=f"pod/{name}") for name in ("patch", "delete")]
    found = await scenario.waiting(3)
    assert "3 pending approvals" in await refused(scenario.request(value="pod/read"))
    await scenario.decide(
        next(one["id"] for one in found if one["value"] == "pod/write"), approve=True
    )
    done = await asyncio.gather(*first, return_exceptions=True)
    assert sorted(type(one) for one in done if one is not None) == [PermissionDenied]
    for one in others:
        one.cancel()


async def test_ten_an_hour(scenario: ApprovalScenario) -> None:
    """Past that the agent is denied unasked; others are not."""
    for number in range(MAX_PER_HOUR):
        asking = scenario.request(value=f"tool/{number}")
        await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
        await asking
    assert "10 requests within the hour" in await refused(scenario.request())
    other = scenario.request(agent=("another", "worker"))
    await scenario.waiting()
    other.cancel()


async def test_who_starts_in_the_place_of_another_has_asked_already(
    scenario: ApprovalScenario,
) -> None:
    """A parent that starts one child after the other cannot exhaust approvers: denials and numbers
    of earlier children count. A sibling that runs beside it, and another family's agent of that
    name, have requests of their own."""
    dead: set[str] = set()
    scenario.registry = ApprovalRegistry(
        scenario.store, scenario._record_event, lambda agent_id: agent_id not in dead
    )
    scenario.registry.approver_count = 1
    asking = scenario.request(agent=("child-0", "worker"), family="parent")
    await scenario.decide((await scenario.waiting())[0]["id"], approve=False)
    await refused(asking)
    beside = scenario.request(agent=("child-1", "worker"), family="parent")
    await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
    await beside
    for number in range(MAX_PER_HOUR - 1):
        dead.add(f"child-{number}")
        agent = (f"child-{number + 1}", "worker")
        assert "less than 10 minutes" in await refused(
            scenario.request(agent=agent, family="parent")
        )
        asking = scenario.request(value=f"tool/{number}", agent=agent, family="parent")
        if number == MAX_PER_HOUR - 2:
            assert "10 requests within the hour" in await refused(asking)
            break
        await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
        await asking
    other = scenario.request(agent=("stranger", "worker"), family="another")
    await scenario.waiting()
    other.cancel()


async def test_what_cannot_be_shown_is_denied(scenario: ApprovalScenario) -> None:
    """Nothing can be approved that is not shown completely."""
    assert "exceed the display limit" in await refused(
        scenario.request(parameters={"content": "x" * 20_000})
    )


async def test_kept_across_restarts(scenario: ApprovalScenario, tmp_path: Path) -> None:
    """A pending request stays pending, may be decided while nobody waits for it, and then applies
    to the next one, once."""
    asking = scenario.request()
    (one,) = await scenario.waiting()
    await scenario.expect_events("approval.requested")
    asking.cancel()
    later = ApprovalScenario(scenario.store)
    await later.registry.load()
    await later.waiting()
    await later.decide(one["id"], approve=True)
    await later.request()
    last = ApprovalScenario(scenario.store)
    await last.registry.load()
    assert last.registry.get(one["id"]).state == "used"
    asks = last.request()
    await last.waiting()
    asks.cancel()


async def test_asked_ahead(scenario: ApprovalScenario) -> None:
    """With `hold` the approval is for the action that follows."""
    ahead = scenario.request(hold=True)
    await scenario.decide((await scenario.waiting())[0]["id"], approve=True)
    await ahead
    await scenario.request()
    asks = scenario.request()
    await scenario.waiting()
    asks.cancel()


def test_a_row_is_read_back() -> None:
    """With the same digest."""
    made = ApprovalRequest(
        id="1", agent_id="a", name="n", kind="tool", value="v", parameters=WRITE, asked=1, expires=2
    )
    assert ApprovalRequest.from_row(made.to_row()) == made

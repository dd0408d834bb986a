"""Shares of a provider: equal for agents of one weight, however many calls each makes; first come
first served within one."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from support.model_gateway import BUDGET, ModelAuthorizer

from agentbox.gateway.llm.concurrency import ConcurrencyLimit, ConcurrencyTicket
from agentbox.gateway.llm.fair_queue import MAX_WAITING, FairQueue
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError

WIDE = replace(BUDGET, max_concurrent=64)


async def shares(
    queue: FairQueue, calls: dict[ConcurrencyTicket, tuple[int, int]], turns: int
) -> list[ConcurrencyTicket]:
    """The order of the first turns when each ticket requests (calls, cost) at once and a turn takes
    one round of the loop."""
    order: list[ConcurrencyTicket] = []

    async def one(place: ConcurrencyTicket, cost: int) -> None:
        await queue.acquire(place, cost)
        order.append(place)
        await asyncio.sleep(0)
        queue.release(place)

    await asyncio.gather(
        *(one(place, cost) for place, (count, cost) in calls.items() for _ in range(count))
    )
    assert queue.running == 0
    assert queue.depth == 0
    return order[:turns]


async def test_ten_agents_have_equal_shares_and_a_greedy_one_starves_none() -> None:
    """Shares are tokens, not calls, within one round's quantum."""
    authorizations = ModelAuthorizer()
    tickets = [
        ConcurrencyTicket.for_caller(authorizations.add_agent(f"a{number}", budget=WIDE))
        for number in range(10)
    ]
    calls = {
        place: (MAX_WAITING if number == 0 else 6, 4096) for number, place in enumerate(tickets)
    }
    order = await shares(FairQueue(2, ConcurrencyLimit()), calls, 52)
    counts = Counter(place.flow for place in order)
    assert max(counts.values()) - min(counts.values()) <= 3
    small = ConcurrencyTicket.for_caller(authorizations.add_agent("small", budget=WIDE))
    order = await shares(
        FairQueue(1, ConcurrencyLimit()), {tickets[0]: (20, 60_000), small: (20, 600)}, 21
    )
    assert Counter(order)[small] == 20  # large calls are as many tokens, not as many calls


async def test_weights_are_shares() -> None:
    """Three to one."""
    authorizations = ModelAuthorizer()
    heavy = ConcurrencyTicket.for_caller(
        authorizations.add_agent("heavy", budget=replace(WIDE, weight=3))
    )
    light = ConcurrencyTicket.for_caller(authorizations.add_agent("light", budget=WIDE))
    counts = Counter(
        await shares(FairQueue(1, ConcurrencyLimit()), {light: (30, 5000), heavy: (30, 5000)}, 24)
    )
    assert 16 <= counts[heavy] <= 20


async def test_children_share_the_turn_of_their_outermost_ancestor() -> None:
    """Five children have as much as one agent beside them."""
    authorizations = ModelAuthorizer()
    parent = authorizations.add_agent("parent", budget=WIDE)
    family = [
        ConcurrencyTicket.for_caller(
            authorizations.add_agent(f"child-{n}", budget=WIDE, parent=parent)
        )
        for n in range(5)
    ]
    other = ConcurrencyTicket.for_caller(authorizations.add_agent("other", budget=WIDE))
    calls = {**dict.fromkeys(family, (5, 4096)), other: (20, 4096)}
    order = await shares(FairQueue(1, ConcurrencyLimit()), calls, 20)
    assert 8 <= sum(place is other for place in order) <= 12


async def test_an_agent_s_own_bound_and_its_parent_s_hold() -> None:
    """Calls over the limit wait, and others pass them."""
    authorizations = ModelAuthorizer()
    parent = authorizations.add_agent("parent", budget=replace(WIDE, max_concurrent=2))
    child = ConcurrencyTicket.for_caller(
        authorizations.add_agent("child", budget=WIDE, parent=parent)
    )
    queue = FairQueue(8, ConcurrencyLimit())
    entered = [asyncio.ensure_future(queue.acquire(child, 10)) for _ in range(4)]
    other = asyncio.ensure_future(
        queue.acquire(ConcurrencyTicket.for_caller(authorizations.add_agent("other")), 10)
    )
    await asyncio.wait({other}, timeout=5)
    assert other.done()
    assert [one.done() for one in entered] == [True, True, False, False]
    queue.release(child)
    await asyncio.wait({entered[2]}, timeout=5)
    entered[3].cancel()
    await asyncio.gather(entered[3], return_exceptions=True)
    assert (queue.depth, queue.running) == (0, 3)


async def test_first_come_first_served_and_not_without_end() -> None:
    """A large call keeps its position; over the limit of waiting calls the next is refused."""
    queue = FairQueue(1, ConcurrencyLimit())
    ticket = ConcurrencyTicket.for_caller(ModelAuthorizer().add_agent("a", budget=WIDE))
    await queue.acquire(ticket, 1)
    waiting = [
        asyncio.ensure_future(queue.acquire(ticket, cost))
        for cost in [90_000, *[1] * (MAX_WAITING - 1)]
    ]
    await asyncio.sleep(0)
    with pytest.raises(ModelGatewayError) as told:
        await queue.acquire(ticket, 1)
    assert told.value.rule == "budget:concurrent"
    for one in waiting:
        queue.release(ticket)
        await asyncio.wait({one}, timeout=5)
        assert one.done()
    queue.release(ticket)
    assert queue.running == 0


async def test_whoever_goes_as_its_turn_comes_leaves_no_slot_taken() -> None:
    """A cancelled call returns its reservation."""
    queue = FairQueue(1, ConcurrencyLimit())
    ticket = ConcurrencyTicket.for_caller(ModelAuthorizer().add_agent("a", budget=WIDE))
    await queue.acquire(ticket, 1)
    second = asyncio.ensure_future(queue.acquire(ticket, 1))
    await asyncio.sleep(0)
    queue.release(ticket)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert queue.running == 0


async def test_a_greedy_child_holds_up_neither_its_parent_nor_its_siblings() -> None:
    """Not by calls over its own limit, not by the calls that may wait, and not by having come
    first."""
    authorizations = ModelAuthorizer()
    parent = authorizations.add_agent("parent", budget=WIDE)
    narrow = replace(WIDE, max_concurrent=1)
    greedy = ConcurrencyTicket.for_caller(
        authorizations.add_agent("greedy", budget=narrow, parent=parent)
    )
    sibling = ConcurrencyTicket.for_caller(
        authorizations.add_agent("sibling", budget=WIDE, parent=parent)
    )
    queue = FairQueue(2, ConcurrencyLimit())
    calls = [asyncio.ensure_future(queue.acquire(greedy, 10)) for _ in range(1 + MAX_WAITING)]
    await asyncio.sleep(0)
    others = [
        asyncio.ensure_future(queue.acquire(place, 10))
        for place in (sibling, ConcurrencyTicket.for_caller(parent))
    ]
    await asyncio.wait({others[0]}, timeout=10)
    assert (others[0].done(), calls[1].done()) == (True, False)
    queue.release(greedy)  # two calls of the child were let in, or one and the parent's: by turns
    queue.release(sibling)
    await asyncio.wait({others[1]}, timeout=10)
    assert others[1].done()
    for one in calls:
        one.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert queue.depth == 0


async def test_a_call_of_any_size_is_weighed_at_once() -> None:
    """The rounds until its turn are bounded: no number makes the gateway count for long."""
    queue = FairQueue(1, ConcurrencyLimit())
    authorizations = ModelAuthorizer()
    first, second = (
        ConcurrencyTicket.for_caller(authorizations.add_agent(name, budget=WIDE))
        for name in ("first", "second")
    )
    calls = [asyncio.ensure_future(queue.acquire(place, 10**30)) for place in (first, second)]
    await asyncio.wait({calls[0]}, timeout=10)
    queue.release(first)
    await asyncio.wait({calls[1]}, timeout=10)
    assert calls[1].done()
    queue.release(second)
    assert (queue.depth, queue.running) == (0, 0)

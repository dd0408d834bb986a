"""Budgets: nothing is spent beyond them, whatever the order of calls, windows, restarts and
generations."""

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model_gateway import BUDGET, ModelAuthorizer

from agentbox.gateway.llm.budget_limits import MIN_OUTPUT
from agentbox.gateway.llm.ledger import BudgetLedger
from agentbox.gateway.llm.reservation import Reservation, Settlement
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.cost import TokenCounts
from agentbox.policy.rights.authorization import Authorization, Budget

SMALL = Budget(max_tokens=1000, max_calls=5, window_seconds=100, max_concurrent=4, weight=1)


def coder(budget: Budget = SMALL) -> Authorization:
    return ModelAuthorizer().add_agent("coder", budget=budget)


def used(tokens: int) -> Settlement:
    """What a call used of tokens, without a price."""
    return Settlement(tokens=TokenCounts(output=tokens), cost=None)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_the_cap_is_lowered_to_what_is_left_and_set_where_absent(tmp_path: Path) -> None:
    """A reservation covers the input and the limit of each output; what a call did not use is
    returned."""
    ledger = BudgetLedger(tmp_path)
    await ledger.open()
    held = await ledger.reserve(coder(), 100, None, 1)
    assert (held.tokens, held.output) == (1000, 900)
    with pytest.raises(ModelGatewayError, match="reserved by calls in flight"):
        await ledger.reserve(coder(), 100, 50, 1)
    ledger.finalise(held, used(300))
    again = await ledger.reserve(coder(), 100, 50, 2)
    assert (again.tokens, again.output) == (200, 100)
    ledger.finalise(again, used(150))
    assert ledger.accounts["coder"].tokens == 450
    await ledger.close()


async def test_over_budget_says_when_the_window_ends(tmp_path: Path) -> None:
    """Tokens and calls each name their rule; a new window begins after the old one."""
    clock = Clock()
    ledger = BudgetLedger(tmp_path, clock)
    await ledger.open()
    ledger.finalise(await ledger.reserve(coder(), 0, 990, 1), used(990))
    clock.now += 40
    with pytest.raises(ModelGatewayError) as told:
        await ledger.reserve(coder(), 0, MIN_OUTPUT, 1)
    assert (told.value.rule, told.value.retry_after) == ("budget:tokens", 60)
    clock.now += 60
    for _ in range(5):
        ledger.finalise(await ledger.reserve(coder(), 1, 10, 1), used(1))
    with pytest.raises(ModelGatewayError) as told:
        ledger.check(coder(), 1, 1)
    assert told.value.rule == "budget:calls"
    await ledger.close()


async def test_a_restart_and_a_new_generation_find_what_was_spent(tmp_path: Path) -> None:
    """The account belongs to the name: another id and generation change nothing, and a killed call stays charged."""
    ledger = BudgetLedger(tmp_path)
    await ledger.open()
    ledger.finalise(await ledger.reserve(coder(), 0, 600, 1), used(600))
    await ledger.reserve(
        coder(), 0, 100, 1
    )  # in flight when the gateway is killed: its worst case stays charged
    ledger = BudgetLedger(tmp_path)
    await ledger.open()
    newer = replace(coder(), agent_id="another", generation=7)
    held = await ledger.reserve(newer, 0, None, 1)
    assert held.output == 300
    await ledger.close()


async def test_a_child_spends_what_is_its_parent_s(tmp_path: Path) -> None:
    """Every ancestor's account is charged, and the smallest rest bounds the call."""
    authorizations = ModelAuthorizer()
    parent = authorizations.add_agent("coder", budget=SMALL)
    child = authorizations.add_agent("tester", budget=BUDGET, parent=parent)
    grandchild = authorizations.add_agent("helper", budget=BUDGET, parent=child)
    ledger = BudgetLedger(tmp_path)
    await ledger.open()
    ledger.finalise(await ledger.reserve(grandchild, 0, 700, 1), used(700))
    assert (await ledger.reserve(child, 0, None, 1)).output == 300
    with pytest.raises(ModelGatewayError):
        await ledger.reserve(parent, 0, 100, 1)
    await ledger.close()


async def test_without_a_disk_no_call_is_made(tmp_path: Path) -> None:
    """A reservation that cannot be stored does not count."""
    ledger = BudgetLedger(tmp_path)
    await ledger.open()
    await ledger.close()
    with pytest.raises(ModelGatewayError, match="cannot save the budget"):
        await ledger.reserve(coder(), 1, 1, 1)
    assert ledger.accounts["coder"].tokens == 0


STEP = st.one_of(
    st.tuples(st.just("call"), st.integers(0, 2), st.integers(0, 400), st.one_of(st.none(), st.integers(1, 2000)), st.integers(1, 3)),
    st.tuples(st.just("settle"), st.integers(0, 50), st.floats(0, 1)),
    st.tuples(st.just("tick"), st.integers(1, 150)),
    st.tuples(st.just("restart")),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_no_order_of_calls_overdraws(steps: list[tuple[object, ...]]) -> None:
    """Calls, settlements, time and restarts in any order: no account is above its budget."""
    with TemporaryDirectory() as directory:
        asyncio.run(_play(Path(directory), steps))


async def _play(directory: Path, steps: list[tuple[object, ...]]) -> None:
    """A provider that respects the limits: use is never more than what was reserved."""
    clock, authorizations = Clock(), ModelAuthorizer()
    parent = authorizations.add_agent("coder", budget=SMALL)
    child = authorizations.add_agent("tester", budget=replace(SMALL, max_tokens=600), parent=parent)
    agents = [
        parent,
        child,
        authorizations.add_agent("other", budget=replace(SMALL, window_seconds=60)),
    ]
    ledger = BudgetLedger(directory, clock)
    await ledger.open()
    held: list[Reservation] = []
    spent: dict[str, int] = {}  # by account, in its window
    since: dict[str, float] = {}
    for name, *values in steps:
        if name == "call":
            caller, input_tokens, wanted, answers = agents[int(str(values[0]))], *values[1:]
            try:
                held.append(await ledger.reserve(caller, input_tokens, wanted, answers))  # type: ignore[arg-type]
            except ModelGatewayError:
                continue
        elif name == "settle" and held:
            one = held.pop(int(str(values[0])) % len(held))
            ledger.finalise(one, used(round(one.tokens * float(str(values[1])))))
        elif name == "tick":
            clock.now += float(str(values[0]))
        elif name == "restart":
            await ledger.close()
            ledger, held = BudgetLedger(directory, clock), []
            await ledger.open()
        for account in ledger.accounts.values():
            assert account.budget is None or account.tokens <= account.budget.max_tokens
            assert account.budget is None or account.calls <= account.budget.max_calls
            assert (
                account.tokens
                >= account.reserved
                == sum(r.tokens for r in held if account in r.accounts)
            )
            if since.get(account.name) == account.since and not held and name != "settle":
                assert account.tokens >= spent.get(account.name, 0)
            since[account.name], spent[account.name] = (
                account.since,
                account.tokens - account.reserved,
            )
    await ledger.close()

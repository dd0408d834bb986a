"""Money in the ledger: no order of parallel calls overdraws a budget, and old calls go."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw
import pytest
from support.model_gateway import BUDGET, PRICE, ModelAuthorizer

from agentbox.gateway.llm.ledger import BudgetLedger
from agentbox.gateway.llm.reservation import CallSubject, Reservation, Settlement
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.cost import TokenCounts
from agentbox.policy.rights.authorization import Authorization


def subject(max_input: int = 10) -> CallSubject:
    return CallSubject(
        provider="openai", model="small-1", currency="USD", price=PRICE, max_input=max_input
    )


async def test_old_calls_are_deleted(tmp_path: Path) -> None:
    """By their age; the budgets stay."""
    now = [1_000_000_000.0]
    ledger = BudgetLedger(tmp_path, lambda: now[0])
    await ledger.open()
    caller = ModelAuthorizer().add_agent("coder")
    for _ in range(3):
        held = await ledger.reserve(caller, 10, 10, 1, subject())
        ledger.finalise(held, Settlement(tokens=TokenCounts(input=5, output=5), cost=90))
        now[0] += 86_400
    await ledger.prune(2)
    await ledger.close()
    db = apsw.Connection(str(tmp_path / "budgets.db"))
    assert list(db.execute("SELECT COUNT(*) FROM model_calls")) == [(2,)]


@dataclass
class Interleaving:
    """Random calls in parallel over the real ledger: reservations, streams that end at any time
    with any use up to their maximum, cuts, cancelled reservations, windows, and restarts."""

    pick: random.Random
    directory: Path
    ledger: BudgetLedger
    clock: list[float]
    held: list[Reservation] = field(default_factory=list)
    made: int = 0
    overdrawn: int = 0

    async def play(self, number: int) -> None:
        """One order of calls of two agents, a parent and its child, that no other order uses."""
        pick, authorizer = self.pick, ModelAuthorizer()
        budget = replace(BUDGET, max_concurrent=64, max_cost=pick.randrange(1, 200_000))
        parent = authorizer.add_agent(f"coder-{number}", budget=budget)
        low = replace(budget, max_cost=pick.choice((None, pick.randrange(1, 100_000))))
        child = authorizer.add_agent(f"child-{number}", budget=low, parent=parent)
        names = (parent.agent, child.agent)
        for _ in range(pick.randrange(2, 9)):
            step = pick.random()
            if step < 0.6:
                await self._reserve((parent, child))
            elif step < 0.95 and self.held:
                self._settle(self.held.pop(pick.randrange(len(self.held))))
            elif step < 0.99:
                self.clock[0] += pick.randrange(1, BUDGET.window_seconds * 2)
            else:
                await self.restart()
            self._check(names)
        while self.held:
            self._settle(self.held.pop())
            self._check(names)

    async def restart(self) -> None:
        """The calls in flight are never settled: their worst case stays."""
        await self.ledger.close()
        self.ledger, self.held = BudgetLedger(self.directory, lambda: self.clock[0]), []
        await self.ledger.open()

    async def _reserve(self, callers: Sequence[Authorization]) -> None:
        """Up to four calls at once, of which one may be cancelled."""
        pick, jobs = self.pick, []
        for _ in range(pick.randrange(1, 5)):
            size = pick.randrange(0, 4000)
            cap, choices = pick.choice((None, pick.randrange(1, 8000))), pick.randrange(0, 3)
            reserving = self.ledger.reserve(
                pick.choice(callers), size // 3, cap, choices, subject(size)
            )
            jobs.append(asyncio.ensure_future(reserving))
        if pick.random() < 0.2:
            await asyncio.sleep(0)
            jobs[0].cancel()
        for result in await asyncio.gather(*jobs, return_exceptions=True):
            if isinstance(result, Reservation):
                self.made += 1
                self.held.append(result)
            else:
                assert isinstance(result, ModelGatewayError | asyncio.CancelledError)

    def _settle(self, held: Reservation) -> None:
        """Any use up to the limits that the provider was given; a cut costs the reservation."""
        pick, tokens = self.pick, held.call.tokens
        if pick.random() < 0.2:
            cut = Settlement(tokens=tokens, cost=held.cost, estimated=True)
            self.ledger.finalise(held, cut)
            return
        used = TokenCounts(
            input=pick.randint(0, tokens.input * 3), output=pick.randint(0, held.output)
        )
        self.ledger.finalise(held, Settlement(tokens=used, cost=PRICE.cost(used)))

    def _check(self, names: Sequence[str]) -> None:
        accounts = (self.ledger.accounts[name] for name in names if name in self.ledger.accounts)
        for account in accounts:
            if account.budget is not None and account.budget.max_cost is not None:
                self.overdrawn += account.cost > account.budget.max_cost
            assert 0 <= account.reserved_cost <= account.cost


@pytest.mark.sampled(10)
@pytest.mark.parametrize("part", range(10))
async def test_no_interleaving_overdraws_money(tmp_path: Path, part: int) -> None:
    """1,000 random orders a part: no account is above its money at any time."""
    clock = [1_000_000.0]
    ledger = BudgetLedger(tmp_path, lambda: clock[0])
    await ledger.open()
    playing = Interleaving(random.Random(part), tmp_path, ledger, clock)
    for number in range(1000):
        await playing.play(number)
    await playing.ledger.close()
    assert playing.overdrawn == 0
    assert playing.made > 1000

"""Money: prices, the record of calls, and budgets that no order of parallel calls overdraws."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from agentbox_testkit.wait import wait_until
from hypothesis import given
from hypothesis import strategies as st
from support.model_gateway import BUDGET, ModelAuthorizer, model_gateway
from support.model_server import ModelServer, ServerFault
from support.model_turns import ModelTurn

from agentbox.gateway.llm.ledger import BudgetLedger
from agentbox.gateway.llm.meter import maximum
from agentbox.gateway.llm.reservation import CallSubject, Reservation, Settlement
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.gateway.llm.vendors.anthropic import ANTHROPIC
from agentbox.gateway.llm.vendors.gemini import GEMINI
from agentbox.gateway.llm.vendors.openai import OPENAI
from agentbox.plan.tables import ModelPricePlan
from agentbox.policy.cost import ModelPrice, TokenCounts, find_price, to_decimal, to_micros
from agentbox.policy.rights.authorization import Authorization

PRICE = ModelPrice.parse("small-*", ModelPricePlan(input="3", output="15", cache_read="0.3", cache_write="3.75"), "USD")  # fmt: skip
PRICES = {"small-*": PRICE}
UNIT = 1_000_000  # micro-units


def read(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    """By the library that the ledger uses in this process: another one would drop its locks."""
    return list(apsw.Connection(str(directory / "budgets.db")).execute(sql))


def rows(directory: Path) -> list[dict[str, Any]]:
    names = [row[1] for row in read(directory, "PRAGMA table_info(model_calls)")]
    found = read(directory, "SELECT * FROM model_calls ORDER BY at, call_id")
    return [dict(zip(names, row, strict=True)) for row in found]


def accounts(directory: Path) -> dict[str, tuple[int, int]]:
    """Tokens and cost by name, as stored."""
    return {row[0]: row[1:] for row in read(directory, "SELECT name, tokens, cost FROM accounts")}


def sums(directory: Path) -> dict[str, tuple[int, int]]:
    """The same, added up from the rows."""
    result: dict[str, tuple[int, int]] = {}
    for row in rows(directory):
        for name in row["accounts"].split():
            tokens, cost = result.get(name, (0, 0))
            used = row["input"] + row["output"]
            result[name] = (tokens + used, cost + (row["cost"] or 0))
    return result


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        (TokenCounts(input=1_000_000), 3_000_000),
        (TokenCounts(output=1), 15),
        (TokenCounts(input=1_000_000, cache_read=1_000_000), 300_000),
        (TokenCounts(input=10, cache_read=4, cache_write=5), 23),  # 3 + 1.2 + 18.75, rounded up
        (TokenCounts(input=1, cache_read=1), 1),  # 0.3, rounded up
        (TokenCounts(input=2, cache_read=9, cache_write=9), 1),  # limited to the input
        (TokenCounts(), 0),
    ],
)
def test_a_cost_is_an_integer_rounded_up(tokens: TokenCounts, cost: int) -> None:
    """Tokens of the cache have their own prices, and are part of the input."""
    assert PRICE.cost(tokens) == cost


@given(st.integers(0, 10**15))
def test_amounts_have_one_text(micros: int) -> None:
    assert to_micros(to_decimal(micros)) == micros


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_what_is_affordable_is_within_the_money(input_tokens: int, micros: int) -> None:
    """And one token more is not."""
    output = PRICE.affordable_output(input_tokens, micros)
    assert output is not None
    if output >= 0:
        assert PRICE.worst_cost(input_tokens, output) <= micros
        assert PRICE.worst_cost(input_tokens, output + 1) > micros
    else:
        assert PRICE.worst_cost(input_tokens, 0) > micros


def test_of_several_patterns_the_longest_counts() -> None:
    """The model's own name first."""
    texts = ModelPricePlan(input="1", output="1")
    names = ("*", "gpt-*", "gpt-4o*", "gpt-4o-mini")
    prices = {name: ModelPrice.parse(name, texts, "USD") for name in names}
    found = {
        model: price.pattern if (price := find_price(prices, model)) else ""
        for model in ("gpt-4o-mini", "gpt-4o-mini-2", "gpt-5", "o3")
    }
    assert found == {"gpt-4o-mini": "gpt-4o-mini", "gpt-4o-mini-2": "gpt-4o*", "gpt-5": "gpt-*", "o3": "*"}  # fmt: skip
    assert find_price({}, "o3") is None
    assert len({price.digest for price in prices.values()}) == 4


@pytest.mark.parametrize(
    ("protocol", "document", "counts"),
    [
        (OPENAI, {"usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}}, (100, 7, 60, 0)),
        (OPENAI, {"response": {"usage": {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 60}}}}, (100, 7, 60, 0)),
        (OPENAI, {"usage": {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": None}}, (5, 7, 0, 0)),
        (ANTHROPIC, {"type": "message", "usage": {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 7}}, (100, 7, 60, 30)),
        (GEMINI, {"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7, "totalTokenCount": 107}}, (100, 7, 60, 0)),
    ],
)  # fmt: skip
def test_each_vendor_counts_its_cache(protocol: Any, document: Any, counts: Any) -> None:
    """The input includes what was read from and written to the cache."""
    usage = protocol.usage(document)
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == counts


def test_the_bound_of_the_input_is_a_token_per_byte() -> None:
    """Of text; an image or document counts at most as a large one, however few bytes it has."""
    body = {"messages": [{"role": "user", "content": "x" * 900}]}
    assert maximum(body, len(json.dumps(body)), 0) >= len(json.dumps(body))
    image = {"messages": [{"image": "A" * 1_000_000}]}
    assert 31_250 <= maximum(image, len(json.dumps(image)), 0) < 32_000
    assert maximum({}, 2, 3) >= 3 * 8192


async def test_a_call_that_does_not_fit_is_refused_in_the_form_of_its_provider(
    tmp_path: Path,
) -> None:
    """429 with `budget:cost`; the maximum of the output is lowered to what the money pays for."""
    with ModelServer(reply=lambda _turns, _body: ModelTurn(text="a", tokens=10**6)) as server:
        async with model_gateway(tmp_path, server, prices=PRICES) as gateway:
            gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_cost=10_000))
            first = await gateway.chat("coder")
            assert first.status_code == 200
            sent = server.requests[-1].body["max_completion_tokens"]
            assert 500 < sent < 10_000 // 15
            left = 10_000 - rows(tmp_path)[0]["cost"]
            assert left < 2_000, "the provider used all that it was allowed"
            for path in ("v1/messages", "v1beta/models/small-1:generateContent"):
                kind = "anthropic" if "messages" in path else "gemini"
                body = {
                    "model": "small-1",
                    "messages": [{"role": "user", "content": "x" * 2000}],
                    "contents": [{"parts": [{"text": "x" * 2000}]}],
                }
                refused = await gateway.post("coder", f"{kind}/{path}", body)
                assert refused.status_code == 429
                assert "remain, this call may cost" in refused.json()["error"]["message"]
            assert gateway.authorizer.refusal_counts["coder", "budget:cost"] == 2
            assert accounts(tmp_path) == sums(tmp_path)


@pytest.mark.parametrize("unknown", ["refuse", "count"])
async def test_a_model_without_a_price(tmp_path: Path, unknown: Any) -> None:
    """Refused for an agent with a budget in money, or counted in tokens only; others may call it,
    and its cost is unknown, not 0."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, prices=PRICES, unknown=unknown) as gateway:
            coder = gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_cost=UNIT))
            gateway.authorizer.add_agent("child", parent=coder)
            gateway.authorizer.add_agent("other")
            statuses = {
                name: (await gateway.chat(name, model="large-1")).status_code
                for name in ("coder", "child", "other")
            }
            refused = 403 if unknown == "refuse" else 200
            assert statuses == {"coder": refused, "child": refused, "other": 200}
            counts = gateway.authorizer.refusal_counts
            assert counts["child", "price-unknown"] == (unknown == "refuse")
            assert {row["cost"] for row in rows(tmp_path)} == {None}
            models = await gateway.client.get(
                f"{gateway.url}/llm/openai/v1/models",
                headers={"authorization": "Bearer token-coder"},
            )
            assert models.status_code == 200, "a list of models costs nothing"


@pytest.mark.parametrize(
    ("path", "member", "value"),
    [
        ("openai/v1/chat/completions", "service_tier", "priority"),
        ("openai/v1/chat/completions", "service_tier", ["priority"]),
        ("anthropic/v1/messages", "speed", "fast"),
        ("anthropic/v1/messages", "Service_Tier", "priority"),
        ("anthropic/v1/messages", "inference_geo", "us"),
        ("gemini/v1beta/models/small-1:generateContent", "serviceTier", "priority"),
    ],
)
async def test_a_dearer_tier_is_refused_to_an_agent_with_a_budget_in_money(
    tmp_path: Path, path: str, member: str, value: Any
) -> None:
    """Its price is not the listed one."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, prices=PRICES) as gateway:
            gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_cost=UNIT))
            gateway.authorizer.add_agent("other")
            body = {
                "model": "small-1",
                "messages": [{"role": "user", "content": "Hi."}],
                "contents": [{"parts": [{"text": "Hi."}]}],
            }
            assert (await gateway.post("coder", path, {**body, member: value})).status_code == 403
            assert server.requests == []
            spelt = member.islower() or member == "serviceTier"
            other = await gateway.post("other", path, {**body, member: value})
            assert other.status_code == (200 if spelt else 403)
            assert (await gateway.post("coder", path, {**body})).status_code == 200


async def test_a_child_spends_the_money_of_its_parent(tmp_path: Path) -> None:
    """A child without a bound of its own has that of its parent, and its rows name both."""
    with ModelServer(reply=lambda _turns, _body: ModelTurn(text="a", tokens=600)) as server:
        async with model_gateway(tmp_path, server, prices=PRICES) as gateway:
            coder = gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_cost=10_000))
            gateway.authorizer.add_agent("child", parent=coder, session_id="a-task")
            assert (await gateway.chat("child")).status_code == 200
            assert (await gateway.chat("coder", text="x" * 3000)).status_code == 429
            (row,) = rows(tmp_path)
            assert (row["agent"], row["accounts"], row["task"]) == (
                "child",
                "child coder",
                "a-task",
            )
            assert accounts(tmp_path) == sums(tmp_path)


async def test_what_was_cut_costs_its_worst_case_and_says_so(tmp_path: Path) -> None:
    """A stream that the provider cut is estimated; one that an agent left costs what was reserved;
    a refusal of the provider costs nothing and leaves no row."""
    with ModelServer(reply=lambda _turns, _body: ModelTurn(text="word " * 50)) as server:
        async with model_gateway(tmp_path, server, prices=PRICES) as gateway:
            gateway.authorizer.add_agent("coder")
            server.faults.append(ServerFault(kind="status", status=400))
            assert (await gateway.chat("coder")).status_code == 400
            assert rows(tmp_path) == []
            server.faults.append(ServerFault(kind="cut", after=3))
            with pytest.raises(httpx.HTTPError):
                await gateway.chat("coder", stream=True)
            server.faults.append(ServerFault(kind="silent"))
            await gateway.chat("coder")
            await gateway.chat("coder")
            await wait_until(
                lambda: [row["estimated"] for row in rows(tmp_path)] == [1, 1, 0],
                "it is settled",
            )
            assert all(row["cost"] > 0 for row in rows(tmp_path))
            assert accounts(tmp_path) == sums(tmp_path)


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
    assert len(rows(tmp_path)) == 2


def subject(max_input: int = 10) -> CallSubject:
    return CallSubject(
        provider="openai", model="small-1", currency="USD", price=PRICE, max_input=max_input
    )


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

"""Money: the record of calls, and what a gateway refuses to an agent with a budget in it."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from agentbox_testkit.wait import wait_until
from support.model_gateway import BUDGET, PRICE, model_gateway
from support.model_server import ModelServer, ServerFault
from support.model_turns import ModelTurn

from agentbox.policy.cost import TokenCounts

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


async def test_parallel_streams_cannot_spend_beyond_their_money(tmp_path: Path) -> None:
    """Twenty at once of a parent and its child, each with all the output that it may have: what the
    provider counted, at the prices, is within the money."""
    with ModelServer(
        reply=lambda _turns, _body: ModelTurn(text="a " * 40, tokens=10**6), pause=0.01
    ) as server:
        async with model_gateway(tmp_path, server, prices=PRICES, max_concurrent=32) as gateway:
            budget = replace(BUDGET, max_cost=30_000, max_concurrent=32)
            coder = gateway.authorizer.add_agent("coder", budget=budget)
            child = replace(budget, max_cost=20_000)
            gateway.authorizer.add_agent("child", budget=child, parent=coder)
            names = ["coder", "child"] * 10
            calls = (gateway.chat(name, stream=True, max_tokens=300) for name in names)
            statuses = Counter(done.status_code for done in await asyncio.gather(*calls))
            assert statuses.keys() == {200, 429}
            assert statuses[200] >= 4
            turn = ModelTurn(text="a " * 40, tokens=10**6)
            counts = [turn.token_counts(request.body) for request in server.requests]
            spent = sum(PRICE.cost(TokenCounts(input=read, output=out)) for read, out in counts)
            assert spent <= 30_000
            await wait_until(
                lambda: accounts(tmp_path)["coder"][1] == spent, "every stream is settled"
            )
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
            await wait_until(lambda: rows(tmp_path) == [], "a refused call leaves no row")
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

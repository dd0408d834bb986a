"""Calls side by side, streams that break, agents that hang up, rights that end, providers that are busy."""

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from agentbox_testkit.wait import wait_until
from support.model_gateway import BUDGET, ModelGatewayFixture, model_gateway
from support.model_server import ModelServer, ServerFault, play_script
from support.model_turns import ModelTurn

LONG = ModelTurn(text="word " * 200, tokens=300)


def spent(gateway: ModelGatewayFixture, name: str = "coder") -> int:
    return gateway.app.ledger.accounts[name].tokens


async def test_parallel_streams_cannot_overdraw(tmp_path: Path) -> None:
    """The provider uses the complete limit for every output."""
    with ModelServer(
        reply=play_script([ModelTurn(text="word " * 40, tokens=1 << 30)]), pause=0.002
    ) as server:
        async with model_gateway(tmp_path, server, max_concurrent=8) as gateway:
            budget = replace(BUDGET, max_tokens=4000, max_concurrent=8)
            gateway.authorizer.add_agent("coder", budget=budget)
            answers = await asyncio.gather(
                *(gateway.chat("coder", stream=True, max_tokens=900) for _ in range(20))
            )
            statuses = [answer.status_code for answer in answers]
            assert 3 <= statuses.count(200) < 20
            assert statuses.count(429) == 20 - statuses.count(200)
            assert spent(gateway) <= 4000
            last = await gateway.chat("coder")
            while last.status_code == 200:
                last = await gateway.chat("coder")
            assert spent(gateway) <= 4000
            assert last.status_code == 429
            assert last.json()["error"]["code"] == "insufficient_quota"
            assert int(last.headers["retry-after"]) > 3000
            assert last.headers["x-should-retry"] == "false"
            assert (
                gateway.authorizer.refusal_counts["coder", "budget:tokens"]
                == statuses.count(429) + 1
            )


async def test_over_budget_is_said_in_each_provider_s_own_shape(tmp_path: Path) -> None:
    """429 as each vendor writes it, with the time to wait."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_calls=1))
            assert (await gateway.chat("coder")).status_code == 200
            messages = {"model": "small-1", "max_tokens": 9, "messages": []}
            response = await gateway.post("coder", "anthropic/v1/messages", messages)
            assert (response.status_code, response.json()["error"]["type"]) == (
                429,
                "rate_limit_error",
            )
            response = await gateway.post(
                "coder", "gemini/v1beta/models/small-1:generateContent", {"contents": []}
            )
            assert (response.status_code, response.json()["error"]["status"]) == (
                429,
                "RESOURCE_EXHAUSTED",
            )
            assert response.json()["error"]["details"][0]["retryDelay"].endswith("s")
            assert gateway.authorizer.refusal_counts["coder", "budget:calls"] == 2


async def test_a_restart_of_the_gateway_gives_nothing_back(tmp_path: Path) -> None:
    """The next call's limit is what the first one left."""
    with ModelServer(reply=play_script([LONG])) as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder", budget=replace(BUDGET, max_tokens=500))
            await gateway.chat("coder")
            before = spent(gateway)
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent(
                "coder", budget=replace(BUDGET, max_tokens=500), agent_id="reborn", generation=4
            )
            assert (await gateway.chat("coder", max_tokens=400)).status_code == 200
            assert server.requests[-1].body["max_tokens"] < 400
            assert before < spent(gateway) <= 500


async def test_a_stream_that_the_provider_breaks_is_estimated_and_broken_for_the_agent_too(
    tmp_path: Path,
) -> None:
    """So is one without usage, which ends regularly."""
    with ModelServer(reply=play_script([LONG])) as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            server.faults.append(ServerFault(kind="cut", after=20))
            with pytest.raises(httpx.RemoteProtocolError):
                await gateway.chat("coder", stream=True, max_tokens=5000)
            assert gateway.app.gauges.estimated == {"openai": 1}
            assert 20 < spent(gateway) < 5200
            assert gateway.app.runtimes["openai"].queue.running == 0
            server.faults.append(ServerFault(kind="silent"))
            assert (await gateway.chat("coder", stream=True, max_tokens=5000)).status_code == 200
            assert gateway.app.gauges.estimated == {"openai": 2}


async def test_an_agent_that_hangs_up_frees_its_slot_and_pays_the_worst_case(
    tmp_path: Path,
) -> None:
    """The provider is cut off, and the count of unseen tokens is not estimated too low."""
    with ModelServer(reply=play_script([LONG]), pause=0.02) as server:
        async with model_gateway(tmp_path, server, max_concurrent=1) as gateway:
            gateway.authorizer.add_agent("coder")
            body = {"model": "small-1", "stream": True, "max_tokens": 2000, "messages": []}
            head = {"authorization": "Bearer token-coder"}
            async with gateway.client.stream(
                "POST", f"{gateway.url}/llm/openai/v1/chat/completions", json=body, headers=head
            ) as response:
                await anext(response.aiter_bytes())
            await wait_until(
                lambda: server.disconnects == 1, "the provider sees that nobody listens"
            )
            await wait_until(
                lambda: gateway.app.runtimes["openai"].queue.running == 0, "the slot is free"
            )
            assert 2000 <= spent(gateway) <= 2200
            await wait_until(
                lambda: gateway.app.gauges.calls["openai", "coder", "gone"] == 1, "it is counted"
            )


async def test_a_right_that_ends_cuts_what_is_open(tmp_path: Path) -> None:
    """Another change of the same agent cuts nothing."""
    with ModelServer(reply=play_script([LONG]), pause=0.02) as server:
        async with model_gateway(tmp_path, server) as gateway:
            caller = gateway.authorizer.add_agent("coder")
            streaming = asyncio.ensure_future(gateway.chat("coder", stream=True))
            await wait_until(lambda: server.running == 1, "the stream runs")
            gateway.authorizer.replace_authorization(
                replace(caller, generation=1)
            )  # something else changed
            await asyncio.sleep(0.1)
            assert not streaming.done()
            gateway.authorizer.replace_authorization(replace(caller, rights=()))
            with pytest.raises(httpx.RemoteProtocolError):
                await streaming
            await wait_until(lambda: server.disconnects == 1, "the provider is cut off too")
            assert (await gateway.chat("coder")).status_code == 403
            gateway.authorizer.remove(caller.agent_id)
            assert (await gateway.chat("coder")).status_code == 401


async def test_a_busy_provider_is_asked_again_before_anything_was_passed_on(tmp_path: Path) -> None:
    """As the provider requests, unless the wait is too long; the last response is passed to the
    agent."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            server.faults += [
                ServerFault(kind="status", status=429, retry_after="0.05"),
                ServerFault(kind="status", status=503),
            ]
            response = await gateway.chat("coder", stream=True)
            assert response.status_code == 200
            assert "Hello" in response.text
            assert gateway.app.gauges.retries == {"openai": 2}
            server.faults += [ServerFault(kind="status", status=429, retry_after="3600")]
            count = len(server.requests)
            response = await gateway.chat("coder")
            assert (response.status_code, response.headers["retry-after"]) == (429, "3600")
            assert len(server.requests) == count + 1
            server.faults += [ServerFault(kind="status", status=500, retry_after="0.01")] * 3
            assert (await gateway.chat("coder")).status_code == 500
            assert not server.faults


async def test_a_provider_that_is_too_slow_is_given_up(tmp_path: Path) -> None:
    """504 after the provider's `timeout_seconds`."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, timeout_seconds=1) as gateway:
            gateway.authorizer.add_agent("coder")
            server.faults.append(ServerFault(kind="slow", seconds=5))
            response = await gateway.chat("coder")
            assert response.status_code == 504
            assert gateway.app.runtimes["openai"].queue.running == 0


async def test_no_more_calls_at_once_than_the_provider_takes(tmp_path: Path) -> None:
    """Twenty calls of ten agents through three slots: all are served."""
    with ModelServer(reply=play_script([LONG]), pause=0.001) as server:
        async with model_gateway(tmp_path, server, max_concurrent=3) as gateway:
            for number in range(10):
                gateway.authorizer.add_agent(f"a{number}")
            calls = [
                gateway.chat(f"a{number}", stream=True) for number in range(10) for _ in range(2)
            ]
            answers = await asyncio.gather(*calls)
            assert {answer.status_code for answer in answers} == {200}
            assert server.max_concurrent == 3
            assert gateway.app.gauges.waited_ms["openai"] > 0

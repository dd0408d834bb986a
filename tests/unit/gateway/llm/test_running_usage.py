"""Providers that send usage before the end of a stream, as running totals: the last one counts, and
only that of a stream that ended is the provider's word."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from agentbox_testkit.wait import wait_until
from support.gateway_fixture import serve_tcp
from support.model_gateway import PRICE, ModelGatewayFixture, model_gateway
from support.model_server import ModelServer

from agentbox.policy.cost import TokenCounts

MAX_OUTPUT = 2000
CHAT = "openai/v1/chat/completions"
PATHS = {
    CHAT: {"model": "small-1", "messages": [], "max_tokens": MAX_OUTPUT},
    "openai/v1/responses": {"model": "small-1", "input": "Hi.", "max_output_tokens": MAX_OUTPUT},
    "anthropic/v1/messages": {"model": "small-1", "messages": [], "max_tokens": MAX_OUTPUT},
}
DONE = b"data: [DONE]\n\n"


def event(document: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def chunk(read: int, written: int, cached: int = 0, **members: Any) -> bytes:
    """A chunk of a chat with the total of the response so far."""
    usage = {
        "prompt_tokens": read,
        "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    row = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
    return event({"choices": [row], "usage": usage, **members})


@asynccontextmanager
async def streaming(
    directory: Path, *events: bytes, then: Literal["end", "break", "wait"]
) -> AsyncIterator[ModelGatewayFixture]:
    """A gateway before a provider that streams these events, and then ends the stream, breaks it,
    or waits until it is cut off."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        for data in events:
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        if then == "end":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if then == "wait":
            await reader.read()

    async with serve_tcp(talk) as port:
        server = ModelServer()
        server._port = port
        async with model_gateway(directory, server, prices={"small-*": PRICE}) as gateway:
            gateway.authorizer.add_agent("coder")
            yield gateway


async def hang_up(gateway: ModelGatewayFixture, path: str, events: int) -> None:
    """Reads that many events of the response and disconnects."""
    head = {"authorization": "Bearer token-coder"}
    # It asks for usage itself, so no event is hidden from it.
    body = {**PATHS[path], "stream": True, "stream_options": {"include_usage": True}}
    if path != CHAT:
        del body["stream_options"]
    url = f"{gateway.url}/llm/{path}"
    async with gateway.client.stream("POST", url, json=body, headers=head) as response:
        seen = b""
        async for data in response.aiter_bytes():
            seen += data
            if seen.count(b"\n\n") >= events:
                break


async def settled(gateway: ModelGatewayFixture) -> tuple[int, int]:
    """Tokens and cost of the agent once its call is settled."""
    await wait_until(
        lambda: sum(gateway.app.gauges.calls.values()) == 1, "the call is over and counted"
    )
    account = gateway.app.ledger.accounts["coder"]
    return account.tokens, account.cost


def price(read: int, written: int, cached: int = 0) -> int:
    return PRICE.cost(TokenCounts(input=read, output=written, cache_read=cached))


@pytest.mark.parametrize("end", [(DONE,), ()])
async def test_the_last_usage_of_a_stream_counts(tmp_path: Path, end: tuple[bytes, ...]) -> None:
    """In tokens and in money, also if a total is smaller than an earlier one, and whether or not
    the provider sends an end mark."""
    totals = (chunk(900, 0), chunk(900, 40), chunk(700, 160, 600), chunk(700, 160, 600, choices=[]))
    async with streaming(tmp_path, *totals, *end, then="end") as gateway:
        body = {**PATHS[CHAT], "stream": True}
        assert (await gateway.post("coder", CHAT, body)).status_code == 200
        assert await settled(gateway) == (860, price(700, 160, 600))
        assert gateway.app.gauges.estimated == {}


@pytest.mark.parametrize(
    ("path", "events"),
    [
        (CHAT, (chunk(10, 0), chunk(10, 1))),
        (CHAT, (chunk(10, 1, choices=[]), chunk(10, 2, choices=[]))),
        (
            "openai/v1/responses",
            tuple(
                event({"type": name, "response": {"usage": {"input_tokens": 10}}})
                for name in ("response.created", "response.in_progress")
            ),
        ),
        (
            "anthropic/v1/messages",
            tuple(
                event({"type": "message_delta", "delta": {}, "usage": {"output_tokens": count}})
                for count in (1, 2)
            ),
        ),
    ],
)
async def test_an_early_usage_settles_no_stream_that_the_agent_leaves(
    tmp_path: Path, path: str, events: tuple[bytes, ...]
) -> None:
    """It pays the worst case, as without any usage: what was generated meanwhile is unknown."""
    async with streaming(tmp_path, *events, then="wait") as gateway:
        await hang_up(gateway, path, len(events))
        tokens, cost = await settled(gateway)
        assert tokens >= MAX_OUTPUT
        assert cost >= price(0, MAX_OUTPUT)
        assert sum(gateway.app.gauges.estimated.values()) == 1


async def test_an_early_usage_settles_no_stream_that_the_provider_breaks(tmp_path: Path) -> None:
    """The output is estimated from the bytes that came."""
    text = event({"choices": [{"index": 0, "delta": {"content": "word " * 600}}]})
    async with streaming(tmp_path, chunk(10, 1), text, then="break") as gateway:
        with pytest.raises(httpx.RemoteProtocolError):
            await gateway.post("coder", CHAT, {**PATHS[CHAT], "stream": True})
        tokens, cost = await settled(gateway)
        assert tokens > 1000
        assert cost >= price(10, 1000)


async def test_a_stream_whose_agent_leaves_after_its_end_mark_is_settled_by_its_usage(
    tmp_path: Path,
) -> None:
    """Clients hang up once they have read the end mark, or the last event of a response."""
    async with streaming(tmp_path / "chat", chunk(10, 5), DONE, then="wait") as gateway:
        await hang_up(gateway, CHAT, 2)
        assert await settled(gateway) == (15, price(10, 5))
    last = {
        "type": "response.completed",
        "response": {"usage": {"input_tokens": 10, "output_tokens": 5}},
    }
    async with streaming(tmp_path / "responses", event(last), then="wait") as gateway:
        await hang_up(gateway, "openai/v1/responses", 1)
        assert await settled(gateway) == (15, price(10, 5))

"""A provider that answers anything: invalid, too large or negative numbers, and endless waits."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from support.gateway_fixture import serve_tcp
from support.model_gateway import ModelGatewayFixture, model_gateway
from support.model_server import ModelServer

from agentbox.gateway.llm import exchange
from agentbox.gateway.llm.vendor_protocol import MAX_TOKENS


@asynccontextmanager
async def saying(
    directory: Path, *answers: tuple[str, bytes]
) -> AsyncIterator[ModelGatewayFixture]:
    """A gateway before a provider that sends these heads and bodies, one per request, the last
    forever."""
    waiting = list(answers)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        await reader.readexactly(length)
        said, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        writer.write(
            f"HTTP/1.1 {said}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()

    async with serve_tcp(talk) as port:
        server = ModelServer()
        server._port = port
        async with model_gateway(directory, server) as gateway:
            yield gateway


def told(usage: Mapping[str, Any]) -> tuple[str, bytes]:
    return "200 OK\r\nContent-Type: application/json", json.dumps(
        {"choices": [], "usage": usage}
    ).encode()


async def test_numbers_of_a_provider_break_no_account(tmp_path: Path) -> None:
    """An invalid count is estimated; one beyond all bounds uses the budget up, and only that of the
    caller."""
    for number, usage in enumerate(
        ({"prompt_tokens": -5, "completion_tokens": -5}, {"prompt_tokens": "1", "x": 1e300})
    ):
        async with saying(tmp_path / str(number), told(usage)) as gateway:
            gateway.authorizer.add_agent("coder")
            assert (await gateway.chat("coder")).status_code == 200
            assert gateway.app.ledger.accounts["coder"].tokens >= 0
    async with saying(
        tmp_path / "huge", told({"prompt_tokens": 10**30, "completion_tokens": 10**30})
    ) as gateway:
        gateway.authorizer.add_agent("coder")
        gateway.authorizer.add_agent("neighbour")
        assert (await gateway.chat("coder")).status_code == 200
        assert gateway.app.ledger.accounts["coder"].tokens == 2 * MAX_TOKENS
        assert [(await gateway.chat("coder")).status_code for _ in range(2)] == [429, 429]
        assert (await gateway.chat("neighbour")).status_code == 200


async def test_a_wait_that_is_no_number_is_none(tmp_path: Path) -> None:
    """The gateway tries again in its own time; a wait without end is passed on."""
    busy = "429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: {}"
    for retry_after, status in (("nan", 200), ("-1", 200), ("inf", 429), ("1e999", 429)):
        async with saying(
            tmp_path / retry_after, (busy.format(retry_after), b"{}"), told({"prompt_tokens": 1})
        ) as gateway:
            gateway.authorizer.add_agent("coder")
            assert (await gateway.chat("coder")).status_code == status, retry_after


async def test_an_agent_that_takes_nothing_of_its_answer_loses_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut and charged the worst case; the caller queued behind it is served."""
    monkeypatch.setattr(exchange, "STALLED_SECONDS", 0.5)
    event = b'data: {"choices": [{"delta": {"content": "' + b"x" * 60_000 + b'"}}]}\n\n'

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        endless = json.loads(await reader.readexactly(length)).get("stream")
        kind = b"text/event-stream" if endless else b"application/json"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nConnection: close\r\n\r\n")
        while endless:
            writer.write(event)
            await writer.drain()
        writer.write(told({"prompt_tokens": 1})[1])

    async with serve_tcp(talk) as port:
        server = ModelServer()
        server._port = port
        async with model_gateway(
            tmp_path, server, max_concurrent=1, timeout_seconds=600
        ) as gateway:
            gateway.authorizer.add_agent("lazy")
            gateway.authorizer.add_agent("coder")
            body = json.dumps(
                {"model": "small-1", "messages": [], "stream": True, "max_tokens": 5000}
            ).encode()
            _, writer = await asyncio.open_connection(
                "127.0.0.1", int(gateway.url.rpartition(":")[2]), limit=1
            )
            head = "POST /llm/openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-lazy\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await wait_until(
                lambda: gateway.app.runtimes["openai"].queue.running == 1, "it has the slot"
            )
            async with asyncio.timeout(60):
                assert (await gateway.chat("coder")).status_code == 200
            assert gateway.app.ledger.accounts["lazy"].tokens >= 5000
            writer.close()


async def test_an_event_nested_without_end_breaks_no_stream(tmp_path: Path) -> None:
    """It is passed on; its usage numbers are not trusted."""
    deep = b'data: {"usage": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    async with saying(
        tmp_path, ("200 OK\r\nContent-Type: text/event-stream", deep + b"data: [DONE]\n\n")
    ) as gateway:
        gateway.authorizer.add_agent("coder")
        response = await gateway.chat("coder", stream=True)
        assert (response.status_code, response.content.endswith(b"[DONE]\n\n")) == (200, True)

"""Streams of the journal over HTTP: resumed by id, filtered, kept alive, ended when the reader
stalls."""

import asyncio
import json
from contextlib import suppress

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events_common import all_events, fill, new_event
from support.api_box import TOKEN
from support.http_events import HttpEvents
from support.served_store import ServedStore

from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.core.http import sse
from agentbox.core.http.sse_parser import SseParser


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = ServedStore(
        "events", "over-http", tmp_path, served="local-jsonl", clock=clock, make=HttpEvents
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest_asyncio.fixture
async def raw(store):
    """Opens a stream without a client: its reader and writer, after the head of the answer."""
    writers = []

    async def opened(query="", *headers, limit=1 << 16):
        reader, writer = await asyncio.open_connection("127.0.0.1", store.port, limit=limit)
        writers.append(writer)
        lines = [
            f"GET /v1/events/stream{query} HTTP/1.1",
            f"Host: 127.0.0.1:{store.port}",
            f"Authorization: Bearer {TOKEN}",
        ]
        writer.write("\r\n".join([*lines, *headers, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in head.lower()
        return reader

    yield opened
    for writer in writers:
        writer.close()


async def text_of(reader, enough, *, seconds=20):
    """The bytes received, with chunk framing, until `enough` returns true."""
    found = b""
    async with asyncio.timeout(seconds):
        while not enough(found):
            piece = await reader.read(1 << 16)
            if not piece:
                return found
            found += piece
    return found


async def test_the_form_of_an_event(adapter, raw):
    """`id` is the seq, `event` the type, `data` the record as one line; `retry` is first."""
    (event,) = await adapter.append([new_event("a.b", data={"text": "line\none"})])
    text = await text_of(await raw("?since=-1"), lambda found: found.count(b"\n\n") >= 2)
    assert b"retry: 1000\n\n" in text
    block = text[text.index(b"id: ") : text.rindex(b"\n\n")].decode().split("\n")
    assert block[:2] == ["id: 0", "event: a.b"]
    assert json.loads(block[2].removeprefix("data: ")) == event.to_wire()


async def test_last_event_id_wins_over_since(adapter, store):
    """Both are exclusive: what follows arrives once, in order."""
    await fill(adapter, 10)
    async with AsyncBoxClient(store.url, token=TOKEN) as client:
        stream = client.stream("stream_events", query={"since": 2}, since="6")
        assert [(await anext(stream)).id for _ in range(3)] == ["7", "8", "9"]
        await fill(adapter, 1)
        assert (await anext(stream)).id == "10"
        await stream.aclose()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"types": "x.y"}, [0]), ({"types": "x.*,z"}, [0, 1, 3]), ({"source": "s"}, [1]), ({"subject": "u"}, [0, 2]),
        ({"agent_id": "g"}, [2]), ({"session_id": "h"}, [3]), ({"types": "x.*", "subject": "u"}, [0]), ({}, [0, 1, 2, 3]),
    ],
)  # fmt: skip
async def test_filters(adapter, store, query, wanted):
    """As those of a page; excluded events do not count. Live events are filtered in the same way."""
    rows = [
        new_event("x.y", subject="u"),
        new_event("x.z", source="s"),
        new_event("y", subject="u", agent_id="g"),
        new_event("z", session_id="h"),
    ]
    await adapter.append(rows)
    async with AsyncBoxClient(store.url, token=TOKEN) as client:
        stream = client.stream("stream_events", query={**query, "since": -1})
        found = [int((await anext(stream)).id) for _ in wanted]
        await adapter.append(rows)
        found += [int((await anext(stream)).id) for _ in wanted]
        await stream.aclose()
    assert found == [*wanted, *(seq + 4 for seq in wanted)]


async def test_a_stream_goes_on_over_a_restart(adapter, store):
    """The client reconnects by itself with the last id: nothing is missing, nothing is repeated."""
    await fill(adapter, 5)
    async with AsyncBoxClient(store.url, token=TOKEN) as client:
        stream = client.stream("stream_events", query={"since": -1})
        found = [(await anext(stream)).id for _ in range(5)]
        await fill(await store.reopen(), 5)
        found += [(await anext(stream)).id for _ in range(5)]
        await stream.aclose()
    assert found == [str(seq) for seq in range(10)]


async def test_a_comment_says_that_the_line_lives(adapter, raw, monkeypatch):
    """Every 15 s; here every tenth of a second, on a real socket."""
    assert sse.PING_SECONDS == 15
    monkeypatch.setattr(sse, "PING_SECONDS", 0.1)
    reader, began = await raw(), asyncio.get_running_loop().time()
    text = await text_of(reader, lambda found: found.count(b": \n\n") >= 4)
    assert asyncio.get_running_loop().time() - began >= 0.35
    assert b"data:" not in text


async def test_a_stalled_client_is_cut_and_resumes_by_id(adapter, raw, store, monkeypatch):
    """After 30 s of blocked writes (here one); it has complete events up to some id, and gets the
    rest from there, while another reader was never delayed."""
    assert sse.STALL_SECONDS == 30
    monkeypatch.setattr(sse, "STALL_SECONDS", 1.0)
    for _ in range(40):
        await adapter.append([new_event(data={"x": "y" * 60_000})] * 10)
    stalled = await raw("?since=-1", limit=1 << 12)
    async with AsyncBoxClient(store.url, token=TOKEN) as client:
        stream = client.stream("stream_events", query={"since": -1})
        assert [int((await anext(stream)).id) for _ in range(400)] == list(range(400))
        await stream.aclose()
        await asyncio.sleep(2)  # the stalled one reads nothing meanwhile
        parser, seen = SseParser(), []
        with suppress(ConnectionError):  # cut without an end
            while piece := await asyncio.wait_for(stalled.read(1 << 20), 10):
                seen += [event.id for event in parser.feed(_unframed(piece))]
        seen = [int(name) for name in seen if name]
        assert 0 < len(seen) < 400
        rest = client.stream("stream_events", since=str(seen[-1]))
        assert int((await anext(rest)).id) == seen[-1] + 1
        await rest.aclose()
    assert len(await all_events(adapter)) == 400


def _unframed(piece):
    """Lines of chunked framing are not fields of an event; a parser of events ignores them."""
    return piece.replace(b"\r\n", b"\n")

"""events local-jsonl meets the contract of the slot through the HTTP API too: appending, reading,
streams, deliveries. The clauses about its files are tested with the class itself; their meaning for
a client is here."""

import asyncio
import json

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.common import CommonContract, expect_error
from agentbox_testkit.contracts.events import EventsContract
from agentbox_testkit.contracts.events_append import AppendClauses
from agentbox_testkit.contracts.events_common import all_events, fill, new_event
from agentbox_testkit.contracts.events_read import ReadClauses
from agentbox_testkit.contracts.events_received import ReceivedClauses
from support.api_box import TOKEN, ApiBox
from support.http_events import HttpEvents
from support.served_store import ServedStore

from agentbox.adapters.events.journal.prune import prune
from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.contracts.events import Events
from agentbox.contracts.tokens import NewToken
from agentbox.core.slot_errors import CursorExpired, QuotaExceeded

BOXES = ("one", "two")


class ServedEvents(ServedStore):
    """With a token for each box that delivers."""

    async def prepare(self, api):
        if BOXES[0] not in self.cfg.secrets:
            wanted = {
                box: NewToken(name=box, scopes=("events:write",), origin_box=box) for box in BOXES
            }
            self.with_secrets(
                **{box: (await api.access.tokens.create(w, "t")).value for box, w in wanted.items()}
            )


@pytest_asyncio.fixture
async def store(tmp_path, clock, request):
    options = getattr(request, "param", {})
    made = ServedEvents(
        "events",
        "over-http",
        tmp_path,
        served="local-jsonl",
        clock=clock,
        options=options,
        make=HttpEvents,
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOverHttp(AppendClauses, ReadClauses, ReceivedClauses, CommonContract):
    contract = Events
    calls = EventsContract.calls
    use = EventsContract.use

    async def test_V07_kills_lose_nothing_acknowledged(self, tmp_path):
        """SIGKILL of the API at 5 different moments, while 4 callers append."""
        told = {}
        with ApiBox(tmp_path, orchestrator=False) as box:
            for kill in range(5):

                async def append(client):
                    while True:
                        done = await client.call(
                            "append_events", body={"events": [new_event().to_wire()]}
                        )
                        told[done["first_seq"]] = True

                async with AsyncBoxClient(box.url, token=TOKEN) as client:
                    callers = [asyncio.ensure_future(append(client)) for _ in range(4)]
                    await asyncio.sleep(0.1 + 0.07 * kill)
                    box.kill()
                    await asyncio.gather(*callers, return_exceptions=True)
                box.start()
            with box.client() as client:
                report, head = (
                    client.call("verify_events", body={}),
                    client.call("head_event")["seq"],
                )
        assert report["ok"]
        assert len(told) > 20
        assert max(told) <= head

    async def test_C08_what_was_acknowledged_survives_a_kill(self, tmp_path):
        """As configured."""
        with ApiBox(tmp_path, orchestrator=False) as box:
            with box.client() as client:
                done = client.call(
                    "append_events", body={"events": [new_event(data={"n": 7}).to_wire()]}
                )
                was = client.call("show_event", {"seq": str(done["first_seq"])})
            box.kill()
            box.start()
            with box.client() as client:
                assert client.call("show_event", {"seq": str(done["first_seq"])}) == was

    async def test_C11_the_callers_context_is_recorded(self, adapter):
        """The caller is known by the token; a caller that may act for others can."""
        with as_caller(CallContext(principal="urn:who", agent_id="a1", session_id="s1")):
            (named,) = await adapter.append([new_event()])
        (own,) = await adapter.append([new_event()])
        assert (named.source, named.agent_id, named.session_id) == ("urn:who", "a1", "s1")
        assert own.source == "urn:agentbox:operator"

    async def test_V12_reading_below_the_anchor_has_expired(self, store, adapter, clock):
        """410 with the oldest stored record: of a page, and of a stream before any byte."""
        for _ in range(3):
            await fill(adapter, 40)
            clock.advance(86400)
        await store.close_all()
        await store.kill_backend()
        await asyncio.to_thread(prune, store.directory, before_seq=50)
        adapter = await store.reopen()
        error = await expect_error(CursorExpired, adapter.read(since=39))
        assert error.members["oldest"] == 41
        status, body = await raw_stream(store.port, "Last-Event-ID: 39")
        assert (status, json.loads(body)["code"], json.loads(body)["oldest"]) == (
            410,
            "cursor-expired",
            41,
        )
        assert (await adapter.read(since=40)).events[0].seq == 41

    @pytest.mark.parametrize("store", [{"max_size": 300_000}], indirect=True)
    async def test_V13_a_full_journal_refuses_and_keeps(self, adapter):
        """507 with the key that limits it; what was written is stored."""
        count = 0
        full = None
        while full is None:
            try:
                count += len(await adapter.append([new_event(data={"x": "y" * 1000})] * 10))
            except QuotaExceeded as error:
                full = error
        assert full.members["config_path"] == "adapters.events.max_size"
        assert (
            len([event for event in await all_events(adapter) if event.type == "test.thing"])
            == count
        )


async def raw_stream(port, header):
    """Status and body of a stream's answer that is no stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET /v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n{header}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    start, _, body = answer.partition(b"\r\n\r\n")
    return int(start.split()[1]), body

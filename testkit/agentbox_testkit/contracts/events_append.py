"""V1 to V3, V6, V7 and the common clauses for events: the guarantees of append."""

import asyncio
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
import rfc8785

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.contracts.events import GENESIS, Event
from agentbox.core.slot_errors import ValidationError, ValueTooLarge
from agentbox_testkit.contracts.common import expect_error, transport
from agentbox_testkit.contracts.events_common import all_events, fill, new_event

ODD = '\u0001 \ufeff \U0001f600 e\u0301 \u00e9 \u202e \r\n\t \\u0000 \'";--,"hash":"'


def is_chained(events: list[Event]) -> bool:
    """Recompute the chain from the records alone, by the formula of the specification."""
    prev = GENESIS
    for seq, event in enumerate(events):
        body = {
            name: item
            for name, item in event.to_wire().items()
            if name not in ("prev_hash", "hash")
        }
        digest = hashlib.sha256(prev.encode() + rfc8785.dumps(body)).hexdigest()
        if (event.seq, event.prev_hash, event.hash) != (seq, prev, digest):
            return False
        prev = digest
    return True


class AppendClauses:
    """Appending."""

    async def test_V01_one_call_gives_contiguous_seqs(self, adapter: Any) -> None:
        """In the given order, from 0, and head follows."""
        assert await adapter.head() == (-1, GENESIS)
        first = await adapter.append([new_event(), new_event()])
        second = await adapter.append([new_event()])
        assert [event.seq for event in (*first, *second)] == [0, 1, 2]
        assert await adapter.head() == (2, second[0].hash)
        assert await all_events(adapter) == [*first, *second]

    async def test_V01_sixty_four_tasks_leave_a_valid_chain(self, adapter: Any) -> None:
        """No gap, no duplicate, and the records of a call are adjacent."""

        async def work(task: int) -> None:
            for number in range(5):
                events = await adapter.append(
                    [new_event(data={"t": task, "n": number, "k": k}) for k in range(3)]
                )
                assert [event.seq - events[0].seq for event in events] == [0, 1, 2]

        await asyncio.gather(*(work(task) for task in range(64)))
        events = await all_events(adapter)
        assert len(events) == 64 * 5 * 3
        assert is_chained(events)
        assert (await adapter.verify()).ok

    async def test_V01_a_refused_event_refuses_its_call(self, adapter: Any) -> None:
        """Nothing of the call is appended."""
        error = await expect_error(
            ValidationError, adapter.append([new_event(), new_event("Not Dotted")])
        )
        assert error.members["errors"][0]["pointer"] == "/events/1/type"
        assert await adapter.head() == (-1, GENESIS)

    async def test_V02_time_never_decreases(self, adapter: Any, clock: Any) -> None:
        """Also when the clock steps back by a day, and after a reopen."""
        (first,) = await adapter.append([new_event()])
        clock.set_wall(first.ts - timedelta(days=1))
        (second,) = await adapter.append([new_event()])
        assert second.ts == first.ts

    @pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), float("inf"), 1 + 2j, b"x"])
    async def test_V02_what_rfc_8785_cannot_carry_is_refused(
        self, adapter: Any, value: Any
    ) -> None:
        """Large integers, NaN, infinities, values that are not JSON."""
        await expect_error(ValidationError, adapter.append([new_event(data={"x": [value]})]))
        assert await adapter.head() == (-1, GENESIS)

    @transport
    async def test_V02_data_is_at_most_64_kib(self, adapter: Any) -> None:
        """At the limit it is kept, beyond it is refused."""
        await adapter.append([new_event(data={"x": "y" * ((64 << 10) - 8)})])
        await expect_error(
            ValueTooLarge, adapter.append([new_event(data={"x": "y" * ((64 << 10) - 7)})])
        )
        assert (await adapter.head())[0] == 0

    @transport
    async def test_V03_a_known_id_appends_nothing(self, store: Any, adapter: Any) -> None:
        """(source, id) again returns the first record: in a later call, in the same call, after a
        reopen.
        """
        (first,) = await adapter.append([new_event(id="x", source="s", data={"n": 1})])
        assert await adapter.append([new_event(id="x", source="s", data={"n": 2})]) == (first,)
        other, same = await adapter.append(
            [new_event(id="x", source="other"), new_event(id="x", source="other")]
        )
        assert other == same
        assert other.seq == 1
        adapter = await store.reopen()
        assert await adapter.append([new_event(id="x", source="s")]) == (first,)
        assert (await adapter.head())[0] == 1

    async def test_V03_repeats_at_once_append_one(self, adapter: Any) -> None:
        """32 appends of one (source, id) together."""
        results = await asyncio.gather(
            *(adapter.append([new_event(id="x", source="s")]) for _ in range(32))
        )
        assert {event.seq for (event,) in results} == {0}

    async def test_V06_durable_is_declared_and_kept(self, store: Any, adapter: Any) -> None:
        """With the capability, appended records are in a file that another process reads."""
        assert ("durable" in adapter.capabilities) == (store.cfg.options.fsync != "interval")
        (event,) = await adapter.append([new_event()])
        assert any(
            event.hash.encode() in path.read_bytes() for path in store.directory.glob("*.jsonl")
        )

    @pytest.fixture
    def kills(self) -> int:
        """A suite may override it."""
        return 20

    @pytest.mark.parametrize("segment_size", [256 << 20, 20_000])
    async def test_V07_kills_lose_nothing_acknowledged(
        self, store: Any, segment_size: int, kills: int
    ) -> None:
        """SIGKILL of the writer at `kills` different moments: every acknowledged record exists, the
        chain is valid. Also with a segment sealed every 30 records.
        """
        store.with_options(segment_size=segment_size)
        acknowledged: dict[int, str] = {}
        for kill in range(kills):
            async with store.worker("append-events") as worker:
                for _ in range(1 + 37 * kill % 400):
                    line = json.loads(await worker.stdout.readline())
                    acknowledged[line["seq"]] = line["hash"]
                worker.kill()
                remainder, _ = await worker.communicate()
            complete_lines = [json.loads(line) for line in remainder.split(b"\n")[:-1]]
            acknowledged.update({line["seq"]: line["hash"] for line in complete_lines})
        adapter = await store.open()
        stored = {event.seq: event.hash for event in await all_events(adapter)}
        assert sorted(stored) == list(range(len(stored)))
        assert {seq: stored.get(seq) for seq in acknowledged} == acknowledged
        assert (await adapter.verify()).ok

    @transport
    async def test_C05_a_cancelled_append_is_whole_or_not_there(self, adapter: Any) -> None:
        """Pairs appended in one call stay pairs."""
        tasks = [
            asyncio.create_task(
                adapter.append([new_event(subject=f"{n}"), new_event(subject=f"{n}")])
            )
            for n in range(200)
        ]
        for index, task in enumerate(tasks):
            if index % 3 == 0:
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await adapter.append([new_event(subject="last"), new_event(subject="last")])
        subjects = [event.subject for event in await all_events(adapter)]
        assert subjects[::2] == subjects[1::2]
        assert len(set(subjects)) == len(subjects) / 2

    @transport
    async def test_C07_text_round_trips(self, adapter: Any) -> None:
        """Code point by code point, in each text member, also if it looks like a part of the
        line.
        """
        new_record = new_event(
            data={ODD: [ODD]}, source=ODD, subject=ODD, agent_id=ODD, session_id=ODD, id=ODD
        )
        (event,) = await adapter.append([new_record])
        (stored,) = await all_events(adapter)
        assert stored == event
        assert (stored.data, stored.source, stored.subject, stored.id) == (
            {ODD: [ODD]},
            ODD,
            ODD,
            ODD,
        )
        assert (await adapter.verify()).ok

    @transport
    @pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
    async def test_C07_nul_and_lone_surrogates_are_refused(self, adapter: Any, text: str) -> None:
        """In any member."""
        for new_record in (
            new_event(subject=text),
            new_event(source=text),
            new_event(id=text),
            new_event(data={"a": [text]}),
            new_event(data={text: 1}),
        ):
            await expect_error(ValidationError, adapter.append([new_record]))
        assert await adapter.head() == (-1, GENESIS)

    @transport
    async def test_C08_what_was_acknowledged_survives_a_kill(self, store: Any) -> None:
        """The last line acknowledged to the killed writer reads back unchanged."""
        async with store.worker("append-events", "1000", "1") as worker:
            acknowledged = [json.loads(await worker.stdout.readline()) for _ in range(50)][-1]
            worker.kill()
            await worker.communicate()
        adapter = await store.open()
        (event,) = (await adapter.read(since=acknowledged["seq"] - 1, limit=1)).events
        assert (event.hash, event.data["n"]) == (acknowledged["hash"], acknowledged["n"])

    @transport
    async def test_C11_the_callers_context_is_recorded(self, adapter: Any) -> None:
        """Agent, session, trace and principal come from the context, unless the event sets them."""
        with as_caller(
            CallContext(principal="urn:who", agent_id="a1", session_id="s1", trace_id="t1")
        ):
            first, second = await adapter.append(
                [new_event(), new_event(source="x", agent_id="a2", session_id="s2")]
            )
        assert (first.source, first.agent_id, first.session_id, first.trace_id) == (
            "urn:who",
            "a1",
            "s1",
            "t1",
        )
        assert (second.source, second.agent_id, second.session_id) == ("x", "a2", "s2")
        (default,) = await adapter.append([new_event()])
        assert default.source == "urn:agentbox:box:test"

    @transport
    async def test_C11_thirty_two_tasks_read_and_append(self, adapter: Any) -> None:
        """Each reads its own append back."""

        async def work(number: int) -> None:
            (event,) = await adapter.append([new_event(subject=f"{number}")])
            batch = await adapter.read(since=event.seq - 1, limit=1)
            assert batch.events == (event,)

        await fill(adapter, 10)
        await asyncio.gather(*(work(number) for number in range(32)))

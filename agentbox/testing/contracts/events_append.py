"""V1 to V3, V6, V7 and the common clauses as they read for events: what append promises."""

import asyncio
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
import rfc8785

from agentbox.adapters.runtime.context import CallContext, calling
from agentbox.contracts.events import GENESIS, Event
from agentbox.core.slot_errors import ValidationError, ValueTooLarge
from agentbox.testing.contracts.common import refused
from agentbox.testing.contracts.events_common import everything, fill, new

ODD = '\u0001 \ufeff \U0001f600 e\u0301 \u00e9 \u202e \r\n\t \\u0000 \'";--,"hash":"'
KILLS = 20


def chained(events: list[Event]) -> bool:
    """Recomputes the chain from the records alone, by the formula of the specification."""
    prev = GENESIS
    for seq, event in enumerate(events):
        body = {name: item for name, item in event.to_wire().items() if name not in ("prev_hash", "hash")}
        digest = hashlib.sha256(prev.encode() + rfc8785.dumps(body)).hexdigest()
        if (event.seq, event.prev_hash, event.hash) != (seq, prev, digest):
            return False
        prev = digest
    return True


class AppendClauses:
    """Appending."""

    async def test_V01_one_call_gives_contiguous_seqs(self, adapter: Any) -> None:
        """In the order given, from 0, and head follows."""
        assert await adapter.head() == (-1, GENESIS)
        first = await adapter.append([new(), new()])
        second = await adapter.append([new()])
        assert [event.seq for event in (*first, *second)] == [0, 1, 2]
        assert await adapter.head() == (2, second[0].hash)
        assert await everything(adapter) == [*first, *second]

    async def test_V01_sixty_four_tasks_leave_a_valid_chain(self, adapter: Any) -> None:
        """No gap, no repeat, and each call's own are side by side."""

        async def work(task: int) -> None:
            for turn in range(5):
                found = await adapter.append([new(data={"t": task, "n": turn, "k": k}) for k in range(3)])
                assert [event.seq - found[0].seq for event in found] == [0, 1, 2]

        await asyncio.gather(*(work(task) for task in range(64)))
        found = await everything(adapter)
        assert len(found) == 64 * 5 * 3
        assert chained(found)
        assert (await adapter.verify()).ok

    async def test_V01_a_refused_event_refuses_its_call(self, adapter: Any) -> None:
        """Nothing of the call is appended."""
        error = await refused(ValidationError, adapter.append([new(), new("Not Dotted")]))
        assert error.members["errors"][0]["pointer"] == "/events/1/type"
        assert await adapter.head() == (-1, GENESIS)

    async def test_V02_time_never_decreases(self, adapter: Any, clock: Any) -> None:
        """Also when the clock steps back by a day, and after a reopen."""
        (first,) = await adapter.append([new()])
        clock.set_wall(first.ts - timedelta(days=1))
        (second,) = await adapter.append([new()])
        assert second.ts == first.ts

    @pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), float("inf"), 1 + 2j, b"x"])
    async def test_V02_what_rfc_8785_cannot_carry_is_refused(self, adapter: Any, value: Any) -> None:
        """Large integers, NaN, infinities, values that are not JSON."""
        await refused(ValidationError, adapter.append([new(data={"x": [value]})]))
        assert await adapter.head() == (-1, GENESIS)

    async def test_V02_data_is_at_most_64_kib(self, adapter: Any) -> None:
        """At the limit it is kept, beyond it is refused."""
        await adapter.append([new(data={"x": "y" * ((64 << 10) - 8)})])
        await refused(ValueTooLarge, adapter.append([new(data={"x": "y" * ((64 << 10) - 7)})]))
        assert (await adapter.head())[0] == 0

    async def test_V03_a_known_id_appends_nothing(self, store: Any, adapter: Any) -> None:
        """(source, id) again gives the first record: in a later call, in the same call, after a reopen."""
        (first,) = await adapter.append([new(id="x", source="s", data={"n": 1})])
        assert await adapter.append([new(id="x", source="s", data={"n": 2})]) == (first,)
        other, same = await adapter.append([new(id="x", source="other"), new(id="x", source="other")])
        assert other == same
        assert other.seq == 1
        adapter = await store.reopen()
        assert await adapter.append([new(id="x", source="s")]) == (first,)
        assert (await adapter.head())[0] == 1

    async def test_V03_repeats_at_once_append_one(self, adapter: Any) -> None:
        """32 appends of one (source, id) together."""
        found = await asyncio.gather(*(adapter.append([new(id="x", source="s")]) for _ in range(32)))
        assert {event.seq for (event,) in found} == {0}

    async def test_V06_durable_is_declared_and_kept(self, store: Any, adapter: Any) -> None:
        """With the capability, what append returned is in a file that another process reads."""
        assert ("durable" in adapter.capabilities) == (store.cfg.option("fsync", "group") != "interval")
        (event,) = await adapter.append([new()])
        assert any(event.hash.encode() in path.read_bytes() for path in store.directory.glob("*.jsonl"))

    @pytest.mark.parametrize("segment_size", [256 << 20, 20_000])
    async def test_V07_kills_lose_nothing_acknowledged(self, store: Any, segment_size: int) -> None:
        """SIGKILL of the writer at 20 different moments: every acknowledged record is there, the chain holds. Also when
        a segment is sealed every 30 records."""
        store.with_options(segment_size=segment_size)
        told: dict[int, str] = {}
        for kill in range(KILLS):
            async with store.worker("append-events") as worker:
                for _ in range(1 + 37 * kill % 400):
                    line = json.loads(await worker.stdout.readline())
                    told[line["seq"]] = line["hash"]
                worker.kill()
                rest, _ = await worker.communicate()
            whole = [json.loads(line) for line in rest.split(b"\n")[:-1]]
            told.update({line["seq"]: line["hash"] for line in whole})
        adapter = await store.open()
        found = {event.seq: event.hash for event in await everything(adapter)}
        assert sorted(found) == list(range(len(found)))
        assert {seq: found.get(seq) for seq in told} == told
        assert (await adapter.verify()).ok

    async def test_C05_a_cancelled_append_is_whole_or_not_there(self, adapter: Any) -> None:
        """Pairs appended in one call stay pairs."""
        tasks = [asyncio.create_task(adapter.append([new(subject=f"{n}"), new(subject=f"{n}")])) for n in range(200)]
        for turn, task in enumerate(tasks):
            if turn % 3 == 0:
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await adapter.append([new(subject="last"), new(subject="last")])
        subjects = [event.subject for event in await everything(adapter)]
        assert subjects[::2] == subjects[1::2]
        assert len(set(subjects)) == len(subjects) / 2

    async def test_C07_text_round_trips(self, adapter: Any) -> None:
        """Code point for code point, in each text member, also where it looks like a part of the line."""
        given = new(data={ODD: [ODD]}, source=ODD, subject=ODD, agent_id=ODD, session_id=ODD, id=ODD)
        (event,) = await adapter.append([given])
        (found,) = await everything(adapter)
        assert found == event
        assert (found.data, found.source, found.subject, found.id) == ({ODD: [ODD]}, ODD, ODD, ODD)
        assert (await adapter.verify()).ok

    @pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
    async def test_C07_nul_and_lone_surrogates_are_refused(self, adapter: Any, text: str) -> None:
        """Wherever they stand."""
        for given in (new(subject=text), new(source=text), new(id=text), new(data={"a": [text]}), new(data={text: 1})):
            await refused(ValidationError, adapter.append([given]))
        assert await adapter.head() == (-1, GENESIS)

    async def test_C08_what_was_acknowledged_survives_a_kill(self, store: Any) -> None:
        """The last line that the dead writer was told of reads back as it was."""
        async with store.worker("append-events", "1000", "1") as worker:
            told = [json.loads(await worker.stdout.readline()) for _ in range(50)][-1]
            worker.kill()
            await worker.communicate()
        adapter = await store.open()
        (event,) = (await adapter.read(since=told["seq"] - 1, limit=1)).events
        assert (event.hash, event.data["n"]) == (told["hash"], told["n"])

    async def test_C11_the_callers_context_is_recorded(self, adapter: Any) -> None:
        """Agent, session, trace and principal come from the context, unless the event names them."""
        with calling(CallContext(principal="urn:who", agent_id="a1", session_id="s1", trace_id="t1")):
            first, second = await adapter.append([new(), new(source="x", agent_id="a2", session_id="s2")])
        assert (first.source, first.agent_id, first.session_id, first.trace_id) == ("urn:who", "a1", "s1", "t1")
        assert (second.source, second.agent_id, second.session_id) == ("x", "a2", "s2")
        (own,) = await adapter.append([new()])
        assert own.source == "urn:agentbox:box:test"

    async def test_C11_thirty_two_tasks_read_and_append(self, adapter: Any) -> None:
        """Each reads its own append back."""

        async def work(number: int) -> None:
            (event,) = await adapter.append([new(subject=f"{number}")])
            batch = await adapter.read(since=event.seq - 1, limit=1)
            assert batch.events == (event,)

        await fill(adapter, 10)
        await asyncio.gather(*(work(number) for number in range(32)))

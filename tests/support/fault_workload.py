"""Workloads over a faulty connection, one function per slot: calls are retried as the contract
allows, and the store must then have each item once. `direct` is the adapter without faults,
`adapter` the one with.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import EventFilter, NewEvent
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, PreconditionFailed

T = TypeVar("T")
ATTEMPTS = 60
TIMEOUT_SECONDS = 10.0  # timeout of one call in seconds
WORKERS = 6


async def call_until_done(call: Callable[[], Awaitable[T]]) -> T:
    """Retry a call after each retryable error and return its result. Raises other errors, and the
    last one.
    """
    for attempt in range(ATTEMPTS):
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await call()
        except AdapterError as error:
            if not error.retryable or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def work_on_beads(adapter: Any, direct: Any, count: int = 40) -> None:
    """Every bead is created once, claimed once, and closed once by its claimer."""
    epic, _ = await call_until_done(
        partial(adapter.create_epic, BeadSpec(title="all", creator="test", dedup_key="epic"))
    )

    async def make(number: int) -> str:
        spec = BeadSpec(title=f"{number}", creator="test", dedup_key=f"child-{number}")
        bead, _ = await call_until_done(partial(adapter.create_child, epic.id, spec))
        return str(bead.id)

    bead_ids = await asyncio.gather(*(make(number) for number in range(count)))
    assert len(set(bead_ids)) == count

    async def drain(name: str) -> list[str]:
        closed: list[str] = []
        while True:
            lease = uuid7()
            claim = await call_until_done(partial(adapter.claim_next, name, lease_id=lease))
            if claim is None:
                return closed
            await call_until_done(
                partial(adapter.close_bead, claim.bead.id, lease_id=lease, result=name)
            )
            closed.append(claim.bead.id)

    closed = await asyncio.gather(*(drain(f"w{number}") for number in range(WORKERS)))
    closed_by = {bead: f"w{number}" for number, beads in enumerate(closed) for bead in beads}
    assert sorted(bead for beads in closed for bead in beads) == sorted(bead_ids)
    for bead in bead_ids:
        stored = await direct.show(bead)
        assert (stored.outcome, stored.result, stored.attempts) == ("done", closed_by[bead], 1), (
            bead
        )


async def work_on_pods(adapter: Any, direct: Any, rounds: int = 6) -> None:
    """A list that all append to by conditional writes has each word once."""
    await call_until_done(partial(adapter.write, "words", b"[]", content_type="application/json"))

    async def read() -> tuple[list[str], str]:
        stored = await adapter.read("words")
        return json.loads(b"".join([chunk async for chunk in stored.body])), stored.meta.etag

    async def append(word: str) -> None:
        while True:
            words, etag = await call_until_done(read)
            if word in words:
                return  # an earlier attempt succeeded, and its reply was lost
            try:
                await adapter.write(
                    "words",
                    json.dumps([*words, word]).encode(),
                    content_type="application/json",
                    if_match=etag,
                )
            except PreconditionFailed:
                continue
            except AdapterError as error:
                if not error.retryable:
                    raise
                continue
            return

    async def worker(number: int) -> None:
        for round_number in range(rounds):
            await append(f"{number}/{round_number}")

    await asyncio.gather(*(worker(number) for number in range(WORKERS)))
    stored = await direct.read("words")
    words = json.loads(b"".join([chunk async for chunk in stored.body]))
    assert sorted(words) == sorted(f"{n}/{turn}" for n in range(WORKERS) for turn in range(rounds))


async def work_on_memory(adapter: Any, direct: Any, count: int = 30) -> None:
    """The last value stored under a key exists once and is found; deleted entries are not."""

    async def store_key(number: int) -> None:
        for round_number in range(3):
            await call_until_done(
                partial(
                    adapter.store,
                    f"k{number}",
                    f"rare{number} turn{round_number}",
                    namespace="faults",
                )
            )
        if number % 3 == 0:
            await call_until_done(partial(adapter.delete, f"k{number}", namespace="faults"))

    await asyncio.gather(*(store_key(number) for number in range(count)))
    for number in range(count):
        stored = await direct.retrieve(f"k{number}", namespace="faults")
        hits = await call_until_done(
            partial(adapter.search, f"rare{number}", namespaces=("faults",), mode="text", limit=10)
        )
        expected = [] if number % 3 == 0 else [f"rare{number} turn2"]
        assert ([] if stored is None else [stored.value]) == expected
        assert [hit.entry.value for hit in hits] == expected
    assert (await direct.stats("faults")).entries == count - len(range(0, count, 3))


async def work_on_events(adapter: Any, direct: Any, count: int = 20) -> None:
    """Each event is in the journal once, in the order of its source, and a resuming reader gets
    each once.
    """

    async def source(number: int) -> None:
        for index in range(count):
            event = NewEvent(
                type="test.fault", data={"n": index}, source=f"s{number}", id=f"{number}-{index}"
            )
            await call_until_done(partial(adapter.append, [event]))

    async def reader() -> list[int]:
        seqs: list[int] = []
        while len(seqs) < WORKERS * count:
            try:
                async for event in adapter.subscribe(
                    since=seqs[-1] if seqs else -1, filter=EventFilter(types=("test.*",))
                ):
                    seqs.append(event.seq)
                    if len(seqs) == WORKERS * count:
                        break
            except AdapterError as error:
                if not error.retryable:
                    raise
        return seqs

    reading = asyncio.create_task(reader())
    await asyncio.gather(*(source(number) for number in range(WORKERS)))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        seqs = await reading
    batch = await direct.read(limit=1000, filter=EventFilter(types=("test.*",)))
    assert [event.seq for event in batch.events] == seqs == sorted(set(seqs))
    for number in range(WORKERS):
        assert [event.data["n"] for event in batch.events if event.source == f"s{number}"] == list(
            range(count)
        )
    assert (await direct.verify()).ok


async def work_on_orchestrator(adapter: Any, direct: Any, count: int = 12) -> None:
    """Each request starts one process, whose output a resuming reader gets completely and once."""
    spec = AgentSpec(
        name="faults",
        profile="sandboxed",
        argv=("/bin/sh", "-c", "for n in 0 1 2 3 4 5 6 7; do echo $n; done"),
    )

    async def run_agent() -> str:
        request = uuid7()
        handle = await call_until_done(partial(adapter.spawn, spec, request_id=request))
        cursor, output = 0, b""
        while True:
            try:
                async for item in adapter.stream(handle.agent_id, since=cursor):
                    cursor = item.cursor
                    output += item.data if item.kind == "stdout" else b""
            except AdapterError as error:
                if not error.retryable:
                    raise
                continue
            break
        assert output == b"0\n1\n2\n3\n4\n5\n6\n7\n"
        info = await call_until_done(partial(adapter.get, handle.agent_id))
        assert info.exit is not None
        assert (info.exit.code, info.exit.reason) == (0, "exit")
        return str(handle.agent_id)

    agents = await asyncio.gather(*(run_agent() for _ in range(count)))
    assert len(set(agents)) == count
    assert {info.handle.agent_id for info in (await direct.list(limit=100)).items} == set(agents)


WORK: dict[str, Callable[..., Awaitable[None]]] = {
    "beads": work_on_beads,
    "pods": work_on_pods,
    "memory": work_on_memory,
    "events": work_on_events,
    "orchestrator": work_on_orchestrator,
}

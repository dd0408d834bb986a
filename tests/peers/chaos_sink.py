"""A box whose journal is delivered to another box, which is killed and started again under load:
the time of an append compared with a running sink, and what the sink has in the end."""

import asyncio
import contextlib
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentbox_testkit.contracts.events_delivery import box_events
from chaos import WRITERS, box_with
from support.api_box import SLOTS as LOCAL
from support.api_box import TOKEN, ApiBox

from agentbox.adapters.events.external_http import DEGRADED_AFTER_SECONDS
from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.client import AsyncBoxClient
from agentbox.client.errors import ApiError
from agentbox.plan.model import SlotPlan

NAME = "chaos"
P95_MS = 50.0  # an append of an external class
UP, AWAY, COMING = "sink up", "sink away", "sink starting and caught up with"
_PAUSE_SECONDS = 0.1  # of a writer, between two appends
_WATCH_SECONDS = 0.25
_PATIENCE = 75.0  # the longest wait between two deliveries is 60 s


def sink_at(prefix: Path) -> ApiBox:
    """The box that receives the records."""
    off = {name: SlotPlan(use="off", required=False) for name in SLOTS}
    return ApiBox(prefix, orchestrator=False, slots={**off, "events": LOCAL["events"]})


def over_sink(prefix: Path, sink: ApiBox) -> ApiBox:
    """A box that delivers to it, with a token that is bound to it. The sink has to run."""
    wanted = {"name": NAME, "scopes": ["events:write"], "origin_box": NAME}
    with sink.client() as client:
        token = client.call("create_token", body=wanted)["value"]
    return box_with(
        prefix, "events", "external-http", {"token": token}, endpoint=f"{sink.url}/v1/events"
    )


@dataclass
class Delivered:
    """What came of it. `took` are milliseconds of the appends that were acknowledged, by where the sink was meanwhile; `back` are
    seconds from the sink's return until it had all that had been appended before."""

    took: dict[str, list[float]] = field(default_factory=lambda: {UP: [], AWAY: [], COMING: []})
    acknowledged: dict[int, str] = field(default_factory=dict)  # subject, by number in the box
    here: list[tuple[int, str]] = field(
        default_factory=list
    )  # number and hash of each record of the box
    there: list[tuple[int, str]] = field(
        default_factory=list
    )  # the same at the sink, as stored there
    subjects: dict[int, str | None] = field(default_factory=dict)  # at the sink
    refused: Counter[str] = field(default_factory=Counter)
    back: list[float] = field(default_factory=list)
    oldest_s: float = 0.0  # the longest that a record was seen to wait
    behind: int = 0  # the most records that were seen to wait
    untrue: list[str] = field(default_factory=list)  # wrong outputs of `/ready`
    pid_changed: bool = False

    @property
    def lost(self) -> int:
        """Acknowledged records that the sink has not, or not as they were written."""
        return sum(self.subjects.get(seq) != subject for seq, subject in self.acknowledged.items())

    def wrong(self, share: float = 0.95) -> list[str]:
        """A sentence for each promise that was broken. Appends are compared at that percentile: the machine's own noise is in
        both."""
        said = []
        if self.refused:
            said.append(f"appends were refused: {dict(self.refused)}")
        if self.lost:
            said.append(f"{self.lost} acknowledged records are not at the sink")
        if self.there != self.here:
            said.append(
                f"the sink has {len(self.there)} records, the box {len(self.here)}: not each once and in order"
            )
        if self.untrue:
            said.append(self.untrue[0])
        with_it, without = ranked(self.took[UP], share), ranked(self.took[AWAY], share)
        if without > max(P95_MS, 2 * with_it):
            said.append(
                f"an append took {without:.0f} ms without the sink and {with_it:.0f} ms with it (p{100 * share:g})"
            )
        if self.pid_changed:
            said.append("the API was restarted")
        return said


def ranked(samples: list[float], share: float) -> float:
    """The nearest-rank percentile of at least one sample."""
    return sorted(samples)[math.ceil(share * len(samples)) - 1]


async def away(
    box: ApiBox, sink: ApiBox, *, kills: int, up: float, down: float, writers: int = WRITERS
) -> Delivered:
    """Appends all the time; kills the sink `kills` times, `up` seconds after it had caught up, for `down` seconds."""
    out, stopped, phase = Delivered(), asyncio.Event(), UP
    assert box.process is not None
    pid = box.process.pid

    async def writer(client: AsyncBoxClient) -> None:
        while not stopped.is_set():
            subject, before, begun = uuid.uuid4().hex, phase, time.perf_counter()
            try:
                row = {"type": "test.chaos", "subject": subject, "data": {"x": "y" * 1000}}
                appended = await client.events.append([row])
            except ApiError as error:
                out.refused[error.code or str(error.status)] += 1
            else:
                spent = (time.perf_counter() - begun) * 1000
                out.took[phase if before == UP else before].append(spent)
                out.acknowledged[appended.first_seq] = subject
            await asyncio.sleep(_PAUSE_SECONDS)

    async def watcher(client: AsyncBoxClient) -> None:
        """No record waits for long here, so `ok` is correct all the time (V14)."""
        while not stopped.is_set():
            told, said = await client.events.delivery(limit=0), await client.ready()
            out.oldest_s, out.behind = (
                max(out.oldest_s, told.oldest_s),
                max(out.behind, told.undelivered),
            )
            named = "events" in said.degraded or any(
                "adapter:events" in one for one in said.missing
            )
            if named and told.oldest_s <= DEGRADED_AFTER_SECONDS:
                out.untrue.append(
                    f"/ready names events, and no record waits for over {DEGRADED_AFTER_SECONDS:g} s: {told}"
                )
            await asyncio.sleep(_WATCH_SECONDS)

    async def until(condition: Callable[[int, int], bool]) -> float:
        """Of the number up to which the sink has everything, and of how many it lacks."""
        begun = time.monotonic()
        while not condition(
            (told := await watch.events.delivery(limit=0)).cursor, told.undelivered
        ):
            for one in crew:
                if one.done():
                    one.result()  # a task that failed for a reason of its own
            if time.monotonic() - begun > _PATIENCE:
                raise TimeoutError(f"the sink does not get it all: {told}")
            await asyncio.sleep(0.02)
        return time.monotonic() - begun

    async with contextlib.AsyncExitStack() as stack:
        ends = (box, box, sink)
        watch, client, there = [
            await stack.enter_async_context(AsyncBoxClient(one.url, token=TOKEN, timeout=30))
            for one in ends
        ]
        crew = [asyncio.create_task(writer(client)) for _ in range(writers)]
        crew.append(asyncio.create_task(watcher(watch)))
        try:
            for _ in range(kills):
                await asyncio.sleep(up)
                phase = AWAY
                await asyncio.to_thread(sink.kill)
                await asyncio.sleep(down)
                phase = COMING
                await asyncio.to_thread(sink.start)
                head, _ = await watch.events.head()
                out.back.append(await until(lambda cursor, _, head=head: cursor >= head))
                phase = UP
        finally:
            stopped.set()
            await asyncio.gather(*crew)
        await until(lambda _, lacking: lacking == 0)
        await _compare(out, watch, there)
    out.pid_changed = box.process.pid != pid or box.process.poll() is not None
    return out


async def _compare(out: Delivered, box: AsyncBoxClient, sink: AsyncBoxClient) -> None:
    since, head = -1, (await box.events.head())[0]
    while since < head:
        batch = await box.events.read(since=since, limit=1000)
        since = batch.next_since
        out.here += [(event.seq, event.hash) for event in batch.events]
    for event in await box_events(sink, NAME):
        assert event.origin is not None
        out.there.append((event.origin.seq, event.origin.hash))
        out.subjects[event.origin.seq] = event.subject

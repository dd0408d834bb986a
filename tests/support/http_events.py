"""The journal of a box as an adapter over its API, for the contract suite: it tests the routes.

It is not in the registry: the external class of this slot has its own journal.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

from agentbox.adapters.events.cloudevents import BATCH, cloud_event
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.input_checks import check_json
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.client.async_client.events import AsyncEventsClient
from agentbox.contracts.events import (
    ALL,
    CONTRACT_VERSION,
    Delivery,
    Event,
    EventBatch,
    EventFilter,
    NewEvent,
    Received,
    VerifyReport,
)
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.core.storage.sqlite import closed_error
from agentbox.manifest.slot_options import HttpOptions
from support.http_slots import HttpSlot


class HttpEvents(HttpSlot):
    """A secret with the name of a box is the token for delivering its records. The caller's context
    is written into the event, as clients have no other way to pass it.
    """

    slot = "events"
    contract_version = CONTRACT_VERSION
    capabilities = frozenset({"durable"})

    def __init__(self, cfg: SlotConfig[HttpOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._remote = AsyncEventsClient(self._peer)
        self._streams: AsyncBoxClient | None = None
        # requests of streams that are starting
        self._heads: set[asyncio.Future[tuple[int, str]]] = set()
        self._ended = asyncio.Event()

    async def open(self, deadline: Deadline) -> None:
        await super().open(deadline)
        self._streams = AsyncBoxClient(self.cfg.options.endpoint, token=self.cfg.secrets["token"])

    async def close(self) -> None:
        self._ended.set()
        if self._heads:
            await asyncio.wait(self._heads)
        streams, self._streams = self._streams, None
        if streams is not None:
            await streams.aclose()
        await super().close()

    async def _check(self) -> None:
        await self.head()

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        """The response has the positions, and the records are read from there. A call that appends
        one event several times returns it for all.
        """
        if self._heads:
            await asyncio.wait(self._heads)
        for index, event in enumerate(events):
            check_json(event.data, f"/events/{index}/data")
        call_context = context.current()
        defaults = {
            "source": call_context.principal or None,
            "agent_id": call_context.agent_id,
            "session_id": call_context.session_id,
        }
        rows = [
            {**event.to_wire(), **{n: v for n, v in defaults.items() if getattr(event, n) is None}}
            for event in events
        ]
        answer = await self._remote.append(rows)
        stored = await self._read_range(answer.first_seq, answer.last_seq)
        return stored if len(stored) == len(events) else stored * len(events)

    async def read(
        self, *, since: int = -1, limit: int = 100, filter: EventFilter = ALL
    ) -> EventBatch:
        return await self._remote.read(since=since, limit=limit, **filter.to_wire())

    def subscribe(
        self, *, since: int | None = None, filter: EventFilter = ALL
    ) -> AsyncGenerator[Event]:
        """Without `since` the stream starts at the current head, so it is requested at once."""
        if since is not None or self._streams is None:
            return self._follow(since, filter)
        head = asyncio.ensure_future(self.head())
        self._heads.add(head)
        head.add_done_callback(self._heads.discard)
        return self._follow(head, filter)

    async def head(self) -> tuple[int, str]:
        return await self._remote.head()

    async def verify(self, *, from_seq: int = 0) -> VerifyReport:
        return await self._remote.verify(from_seq=from_seq)

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        token = self.cfg.secrets.get(box)
        if token is None and self._streams is not None:
            raise invalid_value("/box", "has no configured token")
        headers = {"Content-Type": BATCH, "Authorization": f"Bearer {token}"}
        body = [cloud_event(record) for record in records]
        answer = (
            await self._peer.request("append_events", body=body, headers=headers, idempotent=True)
        ).json()
        first, last = answer["first_seq"], answer["last_seq"]
        stored = () if first < 0 else await self._read_range(first, last)
        count = sum(event.origin is not None for event in stored)
        return Received(stored=count, watermark=answer["watermark"], first_seq=first, last_seq=last)

    async def delivery(self, *, limit: int = 100) -> Delivery:
        return await self._remote.delivery(limit=limit)

    async def _read_range(self, first: int, last: int) -> tuple[Event, ...]:
        return (await self.read(since=first - 1, limit=last - first + 1)).events

    async def _follow(self, since: Any, filter: EventFilter) -> AsyncGenerator[Event]:
        if self._streams is None:
            raise closed_error(self.slot, self.impl)
        start = (await since)[0] if isinstance(since, asyncio.Future) else since
        stream = self._streams.events.subscribe(since=start, **filter.to_wire())
        upcoming: asyncio.Future[Any] | None = None
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            while True:
                upcoming = asyncio.ensure_future(anext(stream))
                await asyncio.wait({upcoming, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not upcoming.done():
                    raise SlotUnavailable(
                        "cannot use events: it was closed",
                        slot="events",
                        impl=self.impl,
                        since=None,
                    )
                yield upcoming.result()
        finally:
            for task in (ended, upcoming):
                if task is not None:
                    task.cancel()
                    with suppress(asyncio.CancelledError, StopAsyncIteration):
                        await task
            await stream.aclose()  # type: ignore[attr-defined]

"""Fixtures of a contract suite for a class over HTTP: the local class of the slot behind a real
listener of the API's application, in this process and on the suite's clock.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agentbox_testkit.clock import ManualClock
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.runtime.adapter import SLOTS, Adapter, Deps, SlotName
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.registry import resolve
from agentbox.api.app import Api, build
from agentbox.api.server import API_BOUNDS
from agentbox.core import clock as wall
from agentbox.core.http.listener import Listener, bind
from agentbox.core.paths import Paths
from agentbox.core.records.wire import JsonObj
from agentbox.plan.model import SlotPlan
from support.api_box import TOKEN, api_plan


def _discard_event(type: str, data: JsonObj) -> None:
    """Discards a core event."""


class ServedClock:
    """The suite's clock, whose monotonic time also advances by itself; sleeping takes real time, or
    background tasks would move it.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return time.monotonic() + self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ServedStore(LocalStore):
    """`served` is the local class behind the API, with `options`; `make` the class under test, or
    None for that of `impl`.
    """

    def __init__(
        self,
        slot: SlotName,
        impl: str,
        prefix: Path,
        *,
        served: str,
        clock: ManualClock,
        options: Mapping[str, Any] | None = None,
        make: type[Adapter] | None = None,
    ) -> None:
        self._plan = api_plan(
            slots={name: SlotPlan(use="off", required=False) for name in SLOTS}
            | {slot: SlotPlan(use=served, required=False, options=dict(options or {}))}
        )
        self._manual, self._class = clock, make
        self.port = self._plan.api.port
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(
            slot,
            impl,
            prefix,
            clock=clock,
            options={"endpoint": self.url},
            secrets={"token": TOKEN},
        )
        self._peer = Paths(prefix / "peer")
        self._stops: list[Callable[[], Any]] = []

    @property
    def directory(self) -> Path:
        """The directory of the served class."""
        return self._peer.slot(self.cfg.slot)

    def class_of(self, slot: SlotName, impl: str) -> type[Adapter]:
        return self._class or super().class_of(slot, impl)

    def with_token(self, token: str) -> Any:
        """Return an unopened instance with another token."""
        cfg = replace(self.cfg, secrets={"token": token})
        return resolve(cfg.slot, cfg.use)(cfg, Deps(metrics=Metrics(), clock=self._manual))

    async def serve(self) -> None:
        """Starts the API."""
        self._peer.state_secrets.mkdir(parents=True, exist_ok=True)
        self._peer.api_key.write_text(TOKEN)
        api = build(self._plan, self._peer, None, clock=ServedClock(self._manual))
        listener = Listener(api.api, bind("127.0.0.1", self._plan.api.port), API_BOUNDS)
        await api.access.store.open()
        await api.mesh.open()
        await listener.open()
        if self.cfg.slot == "events":  # the journal under test has only the suite's records
            api.slots.journal.record_soon = _discard_event  # type: ignore[method-assign]
        await api.slots.start(lambda: None)
        await self.prepare(api)
        self._stops = [
            lambda: listener.close(0.1),
            api.slots.stop,
            api.access.store.close,
            api.mesh.close,
        ]

    async def prepare(self, api: Api) -> None:
        """Prepares the API for use by the store."""

    async def kill_backend(self) -> None:
        """Ends the API; nothing listens any more."""
        stops, self._stops = self._stops, []
        for stop in stops:
            await stop()

    async def reopen(self) -> Any:
        """Closes all instances, restarts the API, and opens again."""
        await self.close_all()
        await self.kill_backend()
        await self.serve()
        return await self.open()

    async def end(self) -> None:
        """Closes all instances and the API."""
        await self.close_all()
        await self.kill_backend()

    def worker(self, work: str, *arguments: str) -> Any:
        """Start another process, on the system clock: from now on the store has that time too. It
        uses the API if the class under test is in the registry, else it opens the served store
        directly.
        """
        self._manual.set_wall(max(self._manual.now(), wall.now()))
        if self._class is None:
            return super().worker(work, *arguments)
        row = self._plan.slots[self.cfg.slot]
        return LocalStore(self.cfg.slot, row.use, self._peer.prefix, options=row.options).worker(
            work, *arguments
        )

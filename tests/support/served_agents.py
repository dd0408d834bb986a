"""A host of agents for tests of HTTP access: a real agent-host, and the API's application on a real
listener in this process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentbox.adapters.remote.agents import HttpOrchestrator
from agentbox.adapters.runtime.adapter import SLOTS, Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.api.app import build
from agentbox.api.background.agent_events import journal_agent_events
from agentbox.api.server import API_BOUNDS
from agentbox.client import AsyncBoxClient
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.events import Event
from agentbox.core.deadline import Deadline
from agentbox.core.http.listener import Listener, bind
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import HttpOptions
from agentbox.plan.model import SlotPlan
from support import tables
from support.agent_host import AgentHostBox
from support.api_box import TOKEN, api_plan

SCOPES = ("agents:read", "agents:write")


class ServedAgents:
    """`token` has only the scopes of agents; TOKEN is the admin's."""

    def __init__(
        self,
        prefix: Path,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
    ) -> None:
        self.host = AgentHostBox(prefix, limits=limits, options=options, scale=scale)
        slots = {name: SlotPlan(use="off", required=False) for name in SLOTS} | {
            "events": SlotPlan(use="local-jsonl", required=False),
            "orchestrator": SlotPlan(
                use="local-process", required=False, options=dict(options or {})
            ),
        }
        self.plan = api_plan(slots=slots, limits=tables.limits(**(limits or {})))
        self.url, self.token = f"http://127.0.0.1:{self.plan.api.port}", ""
        self._stops: list[Callable[[], Any]] = []

    async def start(self) -> None:
        """Starts what is not running, and creates a token the first time."""
        if not self.host.running:
            self.host.start()
        if not self._stops:
            await self._serve()
        self.token = self.token or await self.create_token("box-b")

    async def _serve(self) -> None:
        paths = self.host.paths
        paths.state_secrets.mkdir(parents=True, exist_ok=True)
        paths.api_key.write_text(TOKEN)
        api = build(self.plan, paths, None)
        await api.access.store.open()
        listener = Listener(api.api, bind("127.0.0.1", self.plan.api.port), API_BOUNDS)
        await listener.open()
        await api.slots.start()
        record = journal_agent_events(self.plan, paths, api.slots, {})
        assert record is not None
        self._stops = [
            lambda: listener.close(0.1),
            lambda: _cancel(record),
            api.slots.stop,
            api.access.store.close,
        ]

    async def create_token(self, name: str, *scopes: str) -> str:
        """Return a new token of that name, by default with the scopes of agents."""
        async with AsyncBoxClient(self.url, token=TOKEN) as box:
            created = await box.call(
                "create_token", body={"name": name, "scopes": list(scopes or SCOPES)}
            )
        return str(created["value"])

    def config(self, token: str = "", **options: Any) -> SlotConfig[HttpOptions]:
        """Return the configuration of a class that reaches this host over HTTP."""
        return SlotConfig(
            slot="orchestrator",
            use="external-stdio",
            required=True,
            paths=Paths(self.host.paths.prefix),
            options=HttpOptions(endpoint=self.url, **options),
            secrets={"token": token or self.token},
        )

    def http_adapter(self) -> HttpOrchestrator:
        """Return an unopened adapter over the routes; an admin here is one there."""
        cfg = self.config()
        return HttpOrchestrator(
            cfg, Deps(metrics=Metrics()), admin=replace(cfg, secrets={"token": TOKEN})
        )

    async def crash(self) -> None:
        """Kills agent-host, then ends the API."""
        self.host.kill()
        await self.stop_api()

    async def stop_api(self) -> None:
        """Ends the API; agents keep running."""
        stops, self._stops = self._stops, []
        for stop in stops:
            await stop()

    async def close(self) -> None:
        """Ends the API and agent-host."""
        await self.stop_api()
        self.host.stop()


OpenAdapter = Callable[[ServedAgents], Awaitable[Any]]
_TYPES = ("agent.started", "agent.restarted", "agent.exited", "agent.lost")


class HostLab:
    """A `Lab` whose agents are on a host: `open_adapter` makes the class under test."""

    run_counts = (240, 160)

    def __init__(self, prefix: Path, open_adapter: OpenAdapter) -> None:
        self._prefix, self._open = prefix, open_adapter
        self._served: ServedAgents | None = None
        self._last_seq = -1
        self.adapter: Any = None

    @property
    def served(self) -> ServedAgents:
        assert self._served is not None
        return self._served

    @property
    def root_pid(self) -> int:
        """The pid of the host's agent-host."""
        return self.served.host.pid

    @property
    def workspace(self) -> Path:
        return self.served.host.paths.workspace

    async def start(self, **arguments: Any) -> Any:
        self._served = ServedAgents(self._prefix, **arguments)
        return await self.restart()

    async def disconnect(self) -> None:
        await self.adapter.close()

    async def crash(self) -> None:
        await self.served.crash()
        await self.adapter.close()

    async def restart(self) -> Any:
        await self.served.start()
        self.adapter = await self._open(self.served)
        return self.adapter

    async def record(self, count: int, *, acknowledge: bool = True) -> list[LifecycleRecord]:
        """Read from the host's journal, which receives every line: here `acknowledge` only
        advances.
        """
        query = {"since": self._last_seq, "types": ",".join(_TYPES), "limit": 1000}
        lines: list[LifecycleRecord] = []
        async with asyncio.timeout(20), AsyncBoxClient(self.served.url, token=TOKEN) as box:
            while len(lines) < count:
                batch = (await box.call("read_events", query=query))["events"]
                lines = [_line(Event.from_wire(event)) for event in batch]
        if acknowledge:
            self._last_seq = lines[-1].seq
        return lines

    async def close(self) -> None:
        if self.adapter is not None:
            await self.adapter.close()
        if self._served is not None:
            await self._served.close()


class HostStore:
    """Adapters on a host that tests share; a killed host is started for the next test."""

    def __init__(self, served: ServedAgents, make: Callable[[ServedAgents], Any]) -> None:
        self._served, self._make = served, make
        self._created: list[Any] = []
        self.prefix = served.host.paths.prefix

    def make(self) -> Any:
        self._created.append(self._make(self._served))
        return self._created[-1]

    async def open(self) -> Any:
        adapter = self.make()
        await adapter.open(Deadline.after(10))
        return adapter

    async def start(self) -> None:
        await self._served.start()

    async def kill_backend(self) -> None:
        await self._served.crash()

    async def end(self) -> None:
        for adapter in self._created:
            await adapter.close()
        self._created.clear()


def _line(event: Event) -> LifecycleRecord:
    agent = event.agent_id or ""
    return LifecycleRecord(
        seq=event.seq, id=event.id, at=event.ts, type=event.type, agent_id=agent, data=event.data
    )


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})

"""The five slots of a program, monitored and called through stable typed proxies."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from agentbox.adapters.runtime.adapter import (
    SLOTS,
    Adapter,
    Deps,
    SlotConfig,
    SlotName,
    slot_config,
)
from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.adapters.runtime.lifecycle.opening import OpenFailed
from agentbox.adapters.runtime.lifecycle.state_machine import SlotLifecycle, SlotStatus
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.adapters.runtime.pipeline import Pipeline, PipelineDeps
from agentbox.adapters.runtime.proxy import proxy_for
from agentbox.adapters.runtime.spans import NoTracing, Tracing
from agentbox.adapters.runtime.write_gate import WriteGate
from agentbox.client.agent_host.operation_calls import RpcPeer, agent_host_client
from agentbox.contracts.beads import Beads
from agentbox.contracts.events import Events
from agentbox.contracts.memory import Memory
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.contracts.pods import Pods
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.manifest.declarations.options import Options
from agentbox.plan.model import Plan
from agentbox.policy.redaction.redactor import Redactor, build_redactor


class RequiredSlotFailed(AgentboxError):
    """The required orchestrator failed to open at program start."""


class Slots:
    """`start` opens the slots, `stop` closes them. The proxies exist from the beginning and raise
    SlotUnavailable until their slot is open. `agent_host` is what the peer of the orchestrator slot
    offers beside it. Raises UnknownAdapterImpl for an unknown implementation."""

    def __init__(
        self,
        configs: Mapping[SlotName, SlotConfig[Options]],
        deps: Deps,
        guard: Redactor,
        *,
        timing: LifecycleTiming | None = None,
        spans: Tracing | None = None,
    ) -> None:
        self._timing = timing or LifecycleTiming()
        self._subscribers: list[Callable[[], None]] = []
        self._lifecycles = {
            slot: SlotLifecycle(configs[slot], deps, self._timing, self._on_slot_change)
            for slot in SLOTS
        }
        self.journal = BestEffortJournal(self._lifecycles["events"], deps.metrics)
        self.gate = WriteGate()
        pipeline_deps = PipelineDeps(
            metrics=deps.metrics,
            guard=guard,
            journal=self.journal,
            events_required=configs["events"].required,
            gate=self.gate,
            spans=spans or NoTracing(),
        )
        proxies = {
            slot: proxy_for(slot, Pipeline(slot, self._lifecycles[slot], pipeline_deps))
            for slot in SLOTS
        }
        self.beads = cast(Beads, proxies["beads"])
        self.pods = cast(Pods, proxies["pods"])
        self.memory = cast(Memory, proxies["memory"])
        self.events = cast(Events, proxies["events"])
        self.orchestrator = cast(Orchestrator, proxies["orchestrator"])
        self.agent_host = agent_host_client(self._agent_host_peer)
        self.journal.bind(self.events)

    async def start(self, on_required_tried: Callable[[], None] = lambda: None) -> None:
        """Open all slots concurrently, each with its own timeout. A slot that fails is down and is
        retried.

        `on_required_tried` is called once every required slot has made its first attempt, unless
        the program ends then; optional slots do not delay it. Raises RequiredSlotFailed if a
        required orchestrator fails.
        """
        attempts = {
            slot: asyncio.ensure_future(lifecycle.open_first())
            for slot, lifecycle in self._lifecycles.items()
        }
        outcomes, _ = await asyncio.gather(
            asyncio.gather(*attempts.values(), return_exceptions=True),
            self._notify_required(attempts, on_required_tried),
        )
        for slot, outcome in zip(self._lifecycles, outcomes, strict=True):
            if outcome is None or (isinstance(outcome, OpenFailed) and not self._fatal(slot)):
                continue
            await self.stop()
            if isinstance(outcome, OpenFailed):
                raise RequiredSlotFailed(
                    f"cannot open the required slot {slot}: {outcome}",
                    "check the output of its program with `agentbox logs`",
                )
            raise outcome
        await self.journal.flush_pending()
        for machine in self._lifecycles.values():
            machine.watch()

    async def stop(self) -> None:
        """Close the orchestrator first and events last, within 10 s."""
        order: tuple[tuple[SlotName, ...], ...] = (
            ("orchestrator",),
            ("beads", "pods", "memory"),
            ("events",),
        )
        try:
            async with asyncio.timeout(self._timing.stop):
                for group in order:
                    if group == ("events",):
                        await self.journal.drain()
                    await asyncio.gather(*(self._lifecycles[slot].stop() for slot in group))
        except TimeoutError as error:
            raise AgentboxError(
                f"cannot close the slots: not done within {self._timing.stop:g} s"
            ) from error

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change of a slot's state."""
        self._subscribers.append(changed)

    def status(self) -> dict[SlotName, SlotStatus]:
        """Return the status of each slot."""
        return {slot: lifecycle.status for slot, lifecycle in self._lifecycles.items()}

    def capabilities(self, slot: SlotName) -> frozenset[str]:
        """Return the capabilities of the current instance; empty while the slot is down."""
        return self._lifecycles[slot].serving.capabilities

    def serving(self, slot: SlotName) -> Adapter:
        """Return what serves the slot now, for what is no call: the stores of a backup."""
        return self._lifecycles[slot].serving

    def request_health_check(self, slot: SlotName) -> None:
        """Check the slot's health now, after a connection error on `agent_host`."""
        self._lifecycles[slot].request_health_check()

    def reconfigure(self, slot: SlotName, cfg: SlotConfig[Options]) -> None:
        """Set a slot's configuration; it is applied in the background."""
        self._lifecycles[slot].reconfigure(cfg)

    async def wait_applied(self, slot: SlotName) -> None:
        """Wait until the last configuration was applied: the slot is open with it, or down."""
        await self._lifecycles[slot].config_applied.wait()

    def is_down(self, slot: SlotName) -> bool:
        """Return whether the slot is down and served by the fallback adapter."""
        return self._lifecycles[slot].state == "down"

    async def _notify_required(
        self,
        attempts: Mapping[SlotName, "asyncio.Future[None]"],
        on_required_tried: Callable[[], None],
    ) -> None:
        required = {
            slot: job for slot, job in attempts.items() if self._lifecycles[slot].cfg.required
        }
        if required:
            await asyncio.wait(required.values())
        if not any(job.exception() and self._fatal(slot) for slot, job in required.items()):
            on_required_tried()

    def _agent_host_peer(self) -> RpcPeer:
        """Every implementation of the orchestrator slot is one."""
        return cast(RpcPeer, self._lifecycles["orchestrator"].serving)

    def _fatal(self, slot: SlotName) -> bool:
        return slot == "orchestrator" and self._lifecycles[slot].cfg.required

    def _on_slot_change(self, _lifecycle: SlotLifecycle, type: str, data: dict[str, Any]) -> None:
        self.journal.record_soon(type, data)
        for changed in self._subscribers:
            changed()


class SecretsReader(Protocol):
    """Reads the credentials named in a slot's options; `agentbox.core.paths` in a box."""

    def __call__(self, slot: SlotName) -> Mapping[str, str]: ...


def create_slots(
    plan: Plan,
    paths: Paths,
    deps: Deps,
    *,
    timing: LifecycleTiming | None = None,
    spans: Tracing | None = None,
    secrets: SecretsReader | None = None,
) -> Slots:
    """Create the slots of a box from its plan."""
    configs = {
        slot: slot_config(plan, paths, slot, secrets(slot) if secrets else None) for slot in SLOTS
    }
    return Slots(configs, deps, build_redactor(plan.privacy), timing=timing, spans=spans)

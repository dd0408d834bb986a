"""All five slots of a program: opened together, watched, reached through stable typed proxies."""

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
from agentbox.adapters.runtime.journal import Journal
from agentbox.adapters.runtime.lifecycle import OpenFailed, SlotLifecycle, SlotStatus
from agentbox.adapters.runtime.pipeline import Pipeline, PipelineDeps
from agentbox.adapters.runtime.proxy import proxy_for
from agentbox.adapters.runtime.spans import NoTracing, Tracing
from agentbox.adapters.runtime.timing import Timing
from agentbox.contracts.beads import Beads
from agentbox.contracts.events import Events
from agentbox.contracts.memory import Memory
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.contracts.pods import Pods
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.policy.redaction.redactor import Redactor, build_redactor


class RequiredSlotFailed(AgentboxError):
    """A required orchestrator did not open at the start of the program."""


class Slots:
    """`start` opens, `stop` closes. The proxies are there from the beginning; before a slot is open they refuse with
    SlotUnavailable. Raises UnknownAdapterImpl when made with an implementation that does not exist."""

    def __init__(
        self,
        configs: Mapping[SlotName, SlotConfig],
        deps: Deps,
        guard: Redactor,
        *,
        timing: Timing | None = None,
        spans: Tracing | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._on_change = on_change
        self._lifecycles = {
            slot: SlotLifecycle(configs[slot], deps, self._timing, self._on_slot_change)
            for slot in SLOTS
        }
        self.journal = Journal(self._lifecycles["events"], deps.metrics)
        pipeline_deps = PipelineDeps(
            metrics=deps.metrics,
            guard=guard,
            journal=self.journal,
            events_required=configs["events"].required,
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
        self.journal.bind(self.events)

    async def start(self, on_required_tried: Callable[[], None] = lambda: None) -> None:
        """Opens all slots at once, each within its own time; one that fails is down and is tried again.

        `required_tried` is called as soon as no required slot is still at its first try, unless that ends the program:
        slots that may fail hold nothing back. Raises CannotStart when the orchestrator is required and fails.
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
                    "`agentbox logs` shows what its program says",
                )
            raise outcome
        await self.journal.flush_pending()
        for machine in self._lifecycles.values():
            machine.watch()

    async def stop(self) -> None:
        """Closes orchestrator first, events last, in 10 s at most."""
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

    def status(self) -> dict[SlotName, SlotStatus]:
        """How each slot is now."""
        return {slot: lifecycle.status for slot, lifecycle in self._lifecycles.items()}

    def capabilities(self, slot: SlotName) -> frozenset[str]:
        """What the instance that serves now can do; empty while the slot is down."""
        return self.serving(slot).capabilities

    def serving(self, slot: SlotName) -> Adapter:
        """The instance that serves now, for what no method of the slot's contract is."""
        return self._lifecycles[slot].serving

    def request_health_check(self, slot: SlotName) -> None:
        """Who uses `serving` met a connection-class error: look at the slot's health now."""
        self._lifecycles[slot].request_health_check()

    def reconfigure(self, slot: SlotName, cfg: SlotConfig) -> None:
        """Gives a slot another configuration; it changes over in the background."""
        self._lifecycles[slot].reconfigure(cfg)

    async def wait_applied(self, slot: SlotName) -> None:
        """Returns once the last configuration given was tried: the slot is open with it, or down."""
        await self._lifecycles[slot].config_applied.wait()

    def is_down(self, slot: SlotName) -> bool:
        """Whether the slot is served by a stand-in that refuses."""
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

    def _fatal(self, slot: SlotName) -> bool:
        return slot == "orchestrator" and self._lifecycles[slot].cfg.required

    def _on_slot_change(self, _lifecycle: SlotLifecycle, type: str, data: dict[str, Any]) -> None:
        self.journal.record_soon(type, data)
        if self._on_change is not None:
            self._on_change()


class SecretsReader(Protocol):
    """Reads the credentials that a slot's options name; `agentbox.core.paths` in a box."""

    def __call__(self, slot: SlotName) -> Mapping[str, str]: ...


def create_slots(
    plan: Plan,
    paths: Paths,
    deps: Deps,
    *,
    timing: Timing | None = None,
    spans: Tracing | None = None,
    on_change: Callable[[], None] | None = None,
    secrets: SecretsReader | None = None,
) -> Slots:
    """The container of a box, as its plan states it."""
    configs = {
        slot: slot_config(plan, paths, slot, secrets(slot) if secrets else None) for slot in SLOTS
    }
    return Slots(
        configs, deps, build_redactor(plan.privacy), timing=timing, spans=spans, on_change=on_change
    )

"""The state machine of a slot. It opens, monitors and replaces the instance; calls always reach
one."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

import structlog

from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.lifecycle.inflight import InFlight
from agentbox.adapters.runtime.lifecycle.opening import OpenFailed, open_instance
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.adapters.runtime.off import Off
from agentbox.adapters.runtime.registry import resolve
from agentbox.core.frozen import frozen_slots
from agentbox.manifest.declarations.options import Options

State = Literal["new", "connecting", "ready", "down", "off", "closed"]
StatusState = Literal["ok", "degraded", "down", "connecting", "off"]
STATES: tuple[State, ...] = ("new", "connecting", "ready", "down", "off", "closed")
log = structlog.get_logger()


@frozen_slots
class SlotStatus:
    """The status of a slot. `detail` contains no credentials; `retry_at` is a monotonic time, set
    while the slot is down."""

    state: StatusState
    impl: str
    required: bool
    since: datetime
    detail: str = ""
    retry_at: float | None = None


# (lifecycle, event type, event data)
ChangeCallback = Callable[["SlotLifecycle", str, dict[str, Any]], None]


class SlotLifecycle:
    """Owns the instance behind a proxy. `on_change` is called for every `slot.ready` and
    `slot.down`."""

    def __init__(
        self,
        cfg: SlotConfig[Options],
        deps: Deps,
        timing: LifecycleTiming,
        on_change: ChangeCallback,
    ) -> None:
        self.cfg = cfg
        self._deps, self._timing, self._on_change = deps, timing, on_change
        self._state: State = "new"
        self._off = resolve(cfg.slot, "off")
        assert issubclass(self._off, Off)
        resolve(cfg.slot, cfg.use)  # an unknown implementation fails the program start
        self._serving: Adapter = self._fallback()
        self._inflight = InFlight()
        self._failures = 0
        self._wake = asyncio.Event()
        self._next_cfg: SlotConfig[Options] | None = None
        # cleared while a new configuration waits to be applied
        self.config_applied = asyncio.Event()
        self.config_applied.set()
        self._task: asyncio.Task[None] | None = None
        self._ready_at = 0.0
        initial: StatusState = "off" if cfg.use == "off" else "connecting"
        self.status = SlotStatus(
            state=initial, impl=cfg.use, required=cfg.required, since=deps.clock.now()
        )
        self._set_status(initial, "")
        self._set_state("off" if cfg.use == "off" else "new")

    @property
    def state(self) -> State:
        return self._state

    @property
    def serving(self) -> Adapter:
        """The current instance. Its streams end with SlotUnavailable when it is closed."""
        return self._serving

    def acquire(self) -> AbstractContextManager[Adapter]:
        """Return the current instance. It is not closed during the block for half of the close
        timeout."""
        return self._inflight.acquire(self._serving)

    def request_health_check(self) -> None:
        """Check the slot's health now, after a connection error of a call."""
        if self._state == "ready":
            self._wake.set()

    def reconfigure(self, cfg: SlotConfig[Options]) -> None:
        """Set a new configuration. The old instance serves until the new one is open, unless both
        need exclusive access to the store (`Adapter.exclusive`)."""
        resolve(cfg.slot, cfg.use)
        self._next_cfg = cfg
        self.config_applied.clear()
        self._wake.set()

    async def open_first(self) -> None:
        """Make the first open attempt. Raises OpenFailed; the slot is down then."""
        if self._state != "off":
            await self._connect()

    def watch(self) -> None:
        """Start the monitoring task."""
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"slot-{self.cfg.slot}"
        )

    async def stop(self) -> None:
        """Stop monitoring and close the instance. Later calls reach the fallback adapter, which
        refuses them."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        previous, self._serving = self._serving, self._fallback()
        self._set_state("closed")
        await self._inflight.close(previous, self._timing.close)

    async def _run(self) -> None:
        while True:
            delay = self._timing.health_interval if self._state == "ready" else self._retry_delay()
            woken = await self._sleep(delay)
            if self._next_cfg is not None:
                await self._apply_config()
                self._signal_applied()
            elif self._state == "ready":
                await self._check_health()
            elif self._state == "down" and not woken:
                await self._retry_connect()

    def _signal_applied(self) -> None:
        if self._next_cfg is None:
            self.config_applied.set()

    async def _sleep(self, seconds: float | None) -> bool:
        """Return True if woken before the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _retry_delay(self) -> float | None:
        retry_at = self.status.retry_at
        return None if retry_at is None else max(0.0, retry_at - self._deps.clock.monotonic())

    async def _apply_config(self) -> None:
        cfg, self._next_cfg = self._next_cfg, None
        assert cfg is not None
        previous = self._serving
        if self._state == "ready" and cfg.use == previous.impl and await previous.adopt(cfg):
            self.cfg = cfg
            return
        if cfg.use != self.cfg.use:
            self._deps.metrics.health.remove(cfg.slot, self.cfg.use)
        self.cfg = cfg
        self._set_status("connecting", "")  # before calls of an exclusive store are refused
        if previous.exclusive:
            self._serving = self._fallback()
            await self._inflight.close(previous, self._timing.close)
        if cfg.use == "off":
            self._serving = self._off(cfg, self._deps)
            self._set_state("off")
            self._set_status("off", "")
            await self._inflight.close(previous, self._timing.close)
        else:
            await self._retry_connect()

    async def _retry_connect(self) -> None:
        with suppress(OpenFailed):
            await self._connect()

    async def _connect(self) -> None:
        """Open a new instance. A slot that was down keeps its status and reason until the open
        succeeds. Raises OpenFailed."""
        self._set_state("connecting")
        previous = self._serving
        try:
            instance, health = await open_instance(
                self.cfg, self._deps, self._timing, self._inflight
            )
        except OpenFailed as error:
            await self._go_down(str(error))
            raise
        self._serving = instance
        self._ready_at = self._deps.clock.monotonic()
        self._set_state("ready")
        self._report_health(health)
        self._on_change(
            self, "slot.ready", {"slot": self.cfg.slot, "impl": self.cfg.use, "state": health.state}
        )
        await self._inflight.close(previous, self._timing.close)

    async def _check_health(self) -> None:
        """Check the health of the instance once."""
        try:
            async with asyncio.timeout(self._timing.health):
                health = await self._serving.health()
        except TimeoutError:
            health = self._serving.health_is(
                "down", f"its health check took over {self._timing.health:g} s"
            )
        if health.state == "down":
            await self._go_down(health.detail)
            return
        if self._deps.clock.monotonic() - self._ready_at >= self._timing.retry_reset:
            self._failures = 0
        self._report_health(health)

    async def _go_down(self, reason: str) -> None:
        """Take the slot down: switch to the fallback adapter, close the instance, schedule the next
        attempt."""
        log.warning("slot.down", slot=self.cfg.slot, impl=self.cfg.use, reason=reason)
        delay = self._timing.retry_delay(
            self._failures, resolve(self.cfg.slot, self.cfg.use).min_retry_seconds
        )
        self._failures += 1
        previous = self._serving
        self._set_state("down")
        self._set_status("down", reason, retry_at=self._deps.clock.monotonic() + delay)
        self._serving = self._fallback()
        self._on_change(
            self, "slot.down", {"slot": self.cfg.slot, "impl": self.cfg.use, "reason": reason}
        )
        await self._inflight.close(previous, self._timing.close)

    def _fallback(self) -> Adapter:
        """Return an instance of the `off` class: as configured, or with reason "down"."""
        if self.cfg.use == "off":
            return self._off(self.cfg, self._deps)
        status = getattr(self, "status", None)
        return self._off(
            self.cfg,
            self._deps,
            reason="down",
            since=status.since if status else None,
            retry_at=status.retry_at if status else None,
        )  # type: ignore[call-arg]

    def _report_health(self, health: Health) -> None:
        self._set_status("degraded" if health.state == "degraded" else "ok", health.detail)

    def _set_status(
        self,
        state: Literal["ok", "degraded", "down", "connecting", "off"],
        detail: str,
        *,
        retry_at: float | None = None,
    ) -> None:
        state_changed = state != self.status.state
        since = self._deps.clock.now() if state_changed else self.status.since
        self.status = replace(
            self.status,
            state=state,
            impl=self.cfg.use,
            required=self.cfg.required,
            since=since,
            detail=detail,
            retry_at=retry_at,
        )
        level = {"ok": 1, "degraded": 2, "off": 2}.get(state, 0)
        self._deps.metrics.health.labels(self.cfg.slot, self.cfg.use).set(level)

    def _set_state(self, to: State) -> None:
        if to != self._state:
            self._deps.metrics.transitions.labels(self.cfg.slot, self._state, to).inc()
        self._state = to
        for state in STATES:
            self._deps.metrics.state.labels(self.cfg.slot, state).set(state == to)

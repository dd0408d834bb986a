"""`artifact:<id> failed`: the deep probes, run after the seal at idle priority and again each hour.

On a busy machine a child at idle priority may time out, which says nothing about the artifact. So a
failed probe is repeated at normal priority, and that result counts.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from agentbox.box.probes.base import ProbeResult
from agentbox.box.probes.suite import run_probes
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

INTERVAL_SECONDS = 3600.0
_IDLE = 19  # nice value; on Linux it belongs to the thread, and its children inherit it
_TOTAL_SECONDS = 120.0  # at idle priority a probe may wait long for a processor


class ArtifactsRequirement(Requirement):
    """Returns the results of the last run, so `check` is cheap; it starts a run when one is due.
    Before the first run nothing counts as broken: phase 5 has checked the required artifacts.
    """

    family = "artifacts"

    def __init__(
        self,
        paths: Paths,
        plan: Plan,
        sealed: Callable[[], bool],
        *,
        optional_missing: tuple[str, ...] = (),
        force_missing: str = "",
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._sealed = sealed
        self._optional_missing = optional_missing
        self._force_missing = force_missing
        self._interval = interval
        self._due = 0.0
        self._running: threading.Thread | None = None
        self._wake: Wake | None = None
        self.results: tuple[ProbeResult, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of all failed probes, optional ones too: those of phase 5 and of the last deep
        run.
        """
        return (
            *self._optional_missing,
            *(result.id for result in self.results if not result.passed),
        )

    async def check(self) -> tuple[str, ...]:
        if (
            self._sealed()
            and time.monotonic() >= self._due
            and (self._running is None or not self._running.is_alive())
        ):
            self._due = time.monotonic() + self._interval
            self._start_run()
        failed = sorted(
            result.id for result in self.results if result.required and not result.passed
        )
        return tuple(f"artifact:{probe} failed" for probe in failed)

    def missing_on_timeout(self) -> tuple[str, ...]:
        return ("artifact:all failed",)

    def attach(self, wake: Wake) -> None:
        loop = asyncio.get_running_loop()

        def from_thread() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake)

        self._wake = from_thread

    def detach(self) -> None:
        self._wake = None

    def _start_run(self) -> None:
        self._running = threading.Thread(target=self._run, name="deep-probes", daemon=True)
        self._running.start()

    def _run(self) -> None:
        first: list[ProbeResult] = []
        idle = threading.Thread(
            target=self._run_idle, args=(first,), name="deep-probes-idle", daemon=True
        )
        idle.start()
        idle.join()
        retried = self._run_selected({result.id for result in first if not result.passed})
        self.results = tuple({result.id: result for result in (*first, *retried)}.values())
        if self._wake is not None:
            self._wake()

    def _run_idle(self, results: list[ProbeResult]) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _IDLE)
        results += self._run_selected({probe.id for probe in self._plan.probes})

    def _run_selected(self, selected: Collection[str]) -> list[ProbeResult]:
        plan = replace(
            self._plan, probes=tuple(probe for probe in self._plan.probes if probe.id in selected)
        )
        return run_probes(
            plan,
            self._paths,
            "deep",
            force_missing=self._force_missing,
            total_seconds=_TOTAL_SECONDS,
        )

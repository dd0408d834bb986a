"""`artifact:<id> failed`: the deep probes, run after the seal at idle priority and again each hour."""

import asyncio
import os
import threading
import time
from collections.abc import Callable

from agentbox.plan.model import Plan
from agentbox.probes.base import ProbeResult
from agentbox.probes.requirement import Requirement, Wake
from agentbox.probes.suite import run_probes
from agentbox.settings import Paths

EVERY_SECONDS = 3600.0
_IDLE = 19  # nice value; on Linux it is the thread's own, and its children inherit it
_TOTAL_SECONDS = 120.0  # at idle priority a probe may wait long for a processor


class ArtifactsRequirement(Requirement):
    """Answers from the last run, so `check` costs nothing; it begins a run when one is due. Before the first run
    nothing is known to be broken: phase 5 has proven what must be there."""

    family = "artifacts"

    def __init__(
        self,
        paths: Paths,
        plan: Plan,
        sealed: Callable[[], bool],
        *,
        optional_missing: tuple[str, ...] = (),
        force_missing: str = "",
        every: float = EVERY_SECONDS,
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._sealed = sealed
        self._optional_missing = optional_missing
        self._force_missing = force_missing
        self._every = every
        self._due = 0.0
        self._running: threading.Thread | None = None
        self._wake: Wake | None = None
        self.results: tuple[ProbeResult, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the probes that failed, the optional ones too: those of phase 5 and of the last deep run."""
        return (*self._optional_missing, *(result.id for result in self.results if not result.passed))

    async def check(self) -> tuple[str, ...]:
        if self._sealed() and time.monotonic() >= self._due and (self._running is None or not self._running.is_alive()):
            self._due = time.monotonic() + self._every
            self._begin()
        bad = sorted(result.id for result in self.results if result.required and not result.passed)
        return tuple(f"artifact:{probe} failed" for probe in bad)

    def late(self) -> tuple[str, ...]:
        return ("artifact:all failed",)

    def attach(self, wake: Wake) -> None:
        loop = asyncio.get_running_loop()

        def from_thread() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake)

        self._wake = from_thread

    def detach(self) -> None:
        self._wake = None

    def _begin(self) -> None:
        self._running = threading.Thread(target=self._run, name="deep-probes", daemon=True)
        self._running.start()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _IDLE)
        self.results = tuple(
            run_probes(self._plan, self._paths, "deep", force_missing=self._force_missing, total_seconds=_TOTAL_SECONDS)
        )
        if self._wake is not None:
            self._wake()

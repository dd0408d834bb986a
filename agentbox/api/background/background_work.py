"""Starts and stops what the API does besides serving requests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from agentbox.api.background.boot_watch import BootWatch
from agentbox.api.background.drift import DriftWatcher
from agentbox.core.background.tasks import log_failures

# Starts the work; None: there is none in this box.
Job = Callable[[], Awaitable[None] | None]


class BackgroundWork:
    """Runs from `start` to `stop`. `jobs` are by the name under which a failure is logged. Without
    a boot (a test, a bare start), `drift` is None.
    """

    def __init__(
        self, watch: BootWatch, drift: DriftWatcher | None, jobs: Mapping[str, Job]
    ) -> None:
        self._watch, self._drift = watch, drift
        self._jobs: Mapping[str, Job] = {"background work": watch.run, **jobs}
        self._running: set[asyncio.Future[None]] = set()

    def start(self) -> None:
        if self._drift is not None:
            self._drift.start()
        for name, job in self._jobs.items():
            if (work := job()) is not None:
                running = asyncio.ensure_future(work)
                running.add_done_callback(log_failures(name))
                self._running.add(running)

    async def stop(self) -> None:
        """Imports the boot's events once more, then stops. Idempotent."""
        jobs, self._running = self._running, set()
        if not jobs:
            return
        if self._drift is not None:
            await self._drift.stop()
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        await self._watch.flush()

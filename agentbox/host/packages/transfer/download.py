"""Parallel downloads into the cache with one progress bar; the first failure, or Ctrl-C, ends them
all.
"""

import queue
import threading
import time
from collections.abc import Sequence

from agentbox.core.progress import Progress
from agentbox.host.packages.origin import FileOrigin
from agentbox.host.packages.transfer.cache import Cache
from agentbox.host.packages.transfer.transfer import Transfer, TransferCancelled

_JOIN_SECONDS = 2.0


class Downloads:
    """Fetches batches of files."""

    def __init__(self, cache: Cache, progress: Progress, jobs: int) -> None:
        self._cache, self._progress, self._jobs = cache, progress, jobs
        self._lock = threading.Lock()

    def run(self, name: str, origins: Sequence[FileOrigin]) -> None:
        """Fetches all files into the cache, as the stage `name`. Raises the first failure
        (FetchError).
        """
        if not origins:
            return
        self._progress.stage(name, sum(origin.entry.size for origin in origins))
        pending: queue.SimpleQueue[FileOrigin] = queue.SimpleQueue()
        # The longest first, so that the last ones are short.
        for origin in sorted(origins, key=lambda origin: -origin.entry.size):
            pending.put(origin)
        results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        stop = threading.Event()
        # Daemon threads: a blocked read must not delay an interrupted command. A part file is
        # always consistent.
        workers = [
            threading.Thread(target=self._work, args=(pending, results, stop), daemon=True)
            for _ in range(self._jobs)
        ]
        for worker in workers:
            worker.start()
        try:
            for _ in origins:
                if (failure := results.get()) is not None:
                    raise failure
        finally:
            stop.set()
            _join_threads(workers)
        self._progress.done()

    def _work(
        self,
        pending: "queue.SimpleQueue[FileOrigin]",
        results: "queue.SimpleQueue[BaseException | None]",
        stop: threading.Event,
    ) -> None:
        while not stop.is_set():
            try:
                origin = pending.get_nowait()
            except queue.Empty:
                return
            try:
                Transfer(origin, self._cache, stop, self._advance).run()
                results.put(None)
            except TransferCancelled:
                return
            # handed to the caller's thread, which raises it
            except BaseException as failure:  # noqa: BLE001
                results.put(failure)
                return

    def _advance(self, amount: int) -> None:
        with self._lock:
            self._progress.advance(amount)


def _join_threads(workers: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + _JOIN_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))

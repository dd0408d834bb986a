"""A held start: the box becomes ready, and nothing that it would acknowledge, start or send happens
until it is released. So a start that is undone loses nothing that anybody was promised.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.contracts.routes.route import Route
from agentbox.core.files.atomic import read_json, sync_directory
from agentbox.core.generation_errors import Held
from agentbox.core.paths import Paths

# Writes that a held box serves: the end of the hold, its own test, and the way down.
ALLOWED: Final = frozenset({"release_generation", "try_agent", "drain"})
RETRY_SECONDS: Final = 5.0


class Hold:
    """`held` is read once, when the program starts: the file was made before that or never.
    `generation` is the number in it, 0 without one.
    """

    def __init__(self, paths: Paths) -> None:
        self._path = paths.held
        self.held = self._path.exists()
        self.generation = _number(self._path) if self.held else 0
        self._released = asyncio.Event()

    def check(self, route: Route) -> None:
        """Raises Held for a request that may change something."""
        if not self.held or route.name in ALLOWED:
            return
        if route.method not in ("GET", "HEAD") or route.socket:
            raise Held(
                "cannot serve this request: the box is held until its new generation is confirmed",
                retry_after=RETRY_SECONDS,
                generation=self.generation,
            )

    async def wait(self) -> None:
        """Returns when the box is not held, or no longer."""
        if self.held:
            await self._released.wait()

    def after(self, job: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """The job, begun once the box is released; the job itself if it is not held."""
        return partial(self._run_after, job) if self.held else job

    def release(self) -> None:
        """Ends the hold, on disk first. Blocks. Raises OSError."""
        _remove(self._path)
        self.held = False

    def notify(self) -> None:
        """Starts what waits; on the event loop."""
        self._released.set()

    async def _run_after(self, job: Callable[[], Awaitable[None]]) -> None:
        await self.wait()
        await job()


def hold(paths: Paths, generation: int) -> None:
    """Makes the next start of the box a held one. Raises OSError."""
    paths.held.parent.mkdir(parents=True, exist_ok=True)
    paths.held.write_text(json.dumps({"generation": generation}) + "\n")
    sync_directory(paths.held.parent)


def unhold(paths: Paths) -> None:
    """Ends the hold of a box that is down. Raises OSError."""
    _remove(paths.held)


def _remove(path: Path) -> None:
    """After a power cut it is still gone."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_directory(path.parent)


def _number(path: Path) -> int:
    document = read_json(path)
    number = document.get("generation") if isinstance(document, dict) else None
    return number if isinstance(number, int) else 0

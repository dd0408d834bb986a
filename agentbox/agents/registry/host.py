"""What every life shares: configuration, launcher, store, and the word that the record has grown."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from agentbox.agents.approvals.registry import Approvals
from agentbox.agents.authorization.standings import Standings
from agentbox.agents.config import HostConfig
from agentbox.agents.live_config import Live
from agentbox.agents.registry.denials import Denials
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.store import Happening, Store
from agentbox.agents.review.reviews import Reviews
from agentbox.agents.states.registry import States
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher.client import Launcher

log = structlog.get_logger()


class Host:
    """`mark` is in the environment of every process of this host's agents. `on_ended` is told of each agent that is over."""

    def __init__(self, config: HostConfig, store: Store, mark: str) -> None:
        self.config, self.store, self.mark = config, store, mark
        self.launcher = Launcher()
        self.standings = Standings()
        self.live = Live()
        self.on_ended: Callable[[Entry, Path], None] = _nobody
        self.entries: dict[str, Entry] = {}  # every agent that is known, by id
        self.states = States(store, self.entries)
        self.denials = Denials(self.save_all, self.entries)
        running = self.standings.live
        self.approvals = Approvals(store, lambda one: self.save_all((), (one,)), lambda one: running(one) is not None)
        self.reviews = Reviews(config.paths, config.state / "reviews", lambda one: self.save_all((), (one,)))
        self._untold: tuple[Happening, ...] = ()
        self._unsaved: dict[str, Entry] = {}
        self._saving: set[asyncio.Task[None]] = set()
        self._grown = asyncio.Event()

    async def save(self, entry: Entry, *happened: Happening) -> None:
        """Stores both. When the disk refuses, what happened is kept and stored with the next: an agent must not end, or
        seem to live, because of it."""
        await self.save_all((entry,), happened)

    async def save_all(self, entries: Sequence[Entry], happened: Sequence[Happening]) -> None:
        """As `save`, for several agents or none."""
        with contextlib.suppress(AdapterError):
            await self.keep(entries, happened)

    async def keep(self, entries: Sequence[Entry], happened: Sequence[Happening]) -> None:
        """As `save_all`, and raises what the disk refused with, for a caller who must know."""
        waiting, self._untold = (*self._untold, *map(self._of_run, happened)), ()
        behind, self._unsaved = {**self._unsaved, **{entry.agent_id: entry for entry in entries}}, {}
        try:
            await self.store.save(tuple(behind.values()), *waiting)
        except AdapterError as error:
            self._untold, self._unsaved = (*waiting, *self._untold), {**behind, **self._unsaved}
            log.error("agents are not saved", agent_ids=sorted(behind), reason=error.message)
            raise
        self._grown.set()
        self._grown = asyncio.Event()

    def _of_run(self, one: Happening) -> Happening:
        """With session and trace of its agent, where that is known and the event names none."""
        if one.trace_id or (entry := self.entries.get(one.agent_id)) is None:
            return one
        return replace(one, session_id=entry.session_id, trace_id=entry.trace_id)

    def note(self, entry: Entry, happened: Happening) -> None:
        """Saves it soon, for who cannot wait."""
        task = asyncio.create_task(self.save(entry, happened))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def record_grows(self) -> None:
        """Returns after the next save."""
        await self._grown.wait()

    def ended(self, entry: Entry, folder: Path) -> None:
        """An agent is over; `folder` is its private one."""
        self.on_ended(entry, folder)


def _nobody(_entry: Entry, _folder: Path) -> None:
    """Before a table is there to listen."""

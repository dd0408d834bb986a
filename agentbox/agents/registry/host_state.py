"""What every life shares: configuration, launcher, store, and the word that the record has grown."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from agentbox.agents.approvals.registry import ApprovalRegistry
from agentbox.agents.authorization.authorization_registry import AuthorizationRegistry
from agentbox.agents.config import HostConfig
from agentbox.agents.live_config import LiveConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.denials import DenialLedger
from agentbox.agents.registry.store import AgentStore, LifecycleEvent
from agentbox.agents.review.reviews import ReviewManager
from agentbox.agents.states.registry import StateRegistry
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher.client import LauncherClient

log = structlog.get_logger()


class HostState:
    """`mark` is in the environment of every process of this host's agents. `on_ended` is told of each agent that is over."""

    def __init__(self, config: HostConfig, store: AgentStore, mark: str) -> None:
        self.config, self.store, self.mark = config, store, mark
        self.launcher = LauncherClient()
        self.authorizations = AuthorizationRegistry()
        self.live_config = LiveConfig()
        self.on_ended: Callable[[AgentRecord, Path], None] = _ignore
        self.entries: dict[str, AgentRecord] = {}  # every agent that is known, by id
        self.states = StateRegistry(store, self.entries)
        self.denials = DenialLedger(self.save_all, self.entries)
        active = self.authorizations.active
        self.approvals = ApprovalRegistry(
            store, lambda one: self.save_all((), (one,)), lambda one: active(one) is not None
        )
        self.reviews = ReviewManager(
            config.paths, config.state_dir / "reviews", lambda one: self.save_all((), (one,))
        )
        self._unreported: tuple[LifecycleEvent, ...] = ()
        self._unsaved: dict[str, AgentRecord] = {}
        self._saving: set[asyncio.Task[None]] = set()
        self._saved = asyncio.Event()

    async def save(self, entry: AgentRecord, *events: LifecycleEvent) -> None:
        """Stores both. When the disk refuses, what happened is kept and stored with the next: an agent must not end, or
        seem to live, because of it."""
        await self.save_all((entry,), events)

    async def save_all(
        self, entries: Sequence[AgentRecord], events: Sequence[LifecycleEvent]
    ) -> None:
        """As `save`, for several agents or none."""
        with contextlib.suppress(AdapterError):
            await self.save_or_raise(entries, events)

    async def save_or_raise(
        self, entries: Sequence[AgentRecord], events: Sequence[LifecycleEvent]
    ) -> None:
        """As `save_all`, and raises what the disk refused with, for a caller who must know."""
        pending, self._unreported = (*self._unreported, *map(self._with_run_ids, events)), ()
        unsaved, self._unsaved = (
            {**self._unsaved, **{entry.agent_id: entry for entry in entries}},
            {},
        )
        try:
            await self.store.save(tuple(unsaved.values()), *pending)
        except AdapterError as error:
            self._unreported, self._unsaved = (
                (*pending, *self._unreported),
                {**unsaved, **self._unsaved},
            )
            log.error("agents are not saved", agent_ids=sorted(unsaved), reason=error.message)
            raise
        self._saved.set()
        self._saved = asyncio.Event()

    def _with_run_ids(self, event: LifecycleEvent) -> LifecycleEvent:
        """With session and trace of its agent, where that is known and the event names none."""
        if event.trace_id or (entry := self.entries.get(event.agent_id)) is None:
            return event
        return replace(event, session_id=entry.session_id, trace_id=entry.trace_id)

    def save_soon(self, entry: AgentRecord, event: LifecycleEvent) -> None:
        """Saves it soon, for who cannot wait."""
        task = asyncio.create_task(self.save(entry, event))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def wait_for_record(self) -> None:
        """Returns after the next save."""
        await self._saved.wait()

    def notify_ended(self, entry: AgentRecord, directory: Path) -> None:
        """An agent is over; `folder` is its private one."""
        self.on_ended(entry, directory)


def _ignore(_entry: AgentRecord, _directory: Path) -> None:
    """Before a table is there to listen."""

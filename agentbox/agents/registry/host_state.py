"""State shared by all runners: configuration, launcher, store, and the signal of new records."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from agentbox.agents.approvals.registry import ApprovalRegistry
from agentbox.agents.authorization.authorization_registry import AuthorizationRegistry
from agentbox.agents.config import HostConfig
from agentbox.agents.live_config import LiveConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.denials import DenialLedger
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.review.commits.extraction import CommitExtractor
from agentbox.agents.review.reviews import ReviewManager
from agentbox.agents.states.registry import StateRegistry
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher.client import LauncherClient

log = structlog.get_logger()


class HostState:
    """`mark` is in the environment of every process of this host's agents. `on_ended` is called for
    each agent that has ended. `end_branch_users` ends whoever works in the branch of that agent."""

    def __init__(self, config: HostConfig, store: AgentStore, mark: str) -> None:
        self.config, self.store, self.mark = config, store, mark
        self.launcher = LauncherClient()
        self.authorizations = AuthorizationRegistry()
        self.live_config = LiveConfig()
        self.on_ended: Callable[[AgentRecord, Path], None] = _ignore
        self.end_branch_users: Callable[[str], Awaitable[None]] = _end_nobody
        self.entries: dict[str, AgentRecord] = {}  # every known agent, by id
        self.states = StateRegistry(store, self.entries)
        self.denials = DenialLedger(self.save_all, self.entries)
        active = self.authorizations.active
        self.approvals = ApprovalRegistry(
            store,
            lambda event: self.save_all((), (event,)),
            lambda agent_id: active(agent_id) is not None,
        )
        self.reviews = ReviewManager(
            config.paths,
            config.state_dir / "reviews",
            lambda event: self.save_all((), (event,)),
            CommitExtractor(config, self.launcher, mark),
        )
        self._unreported: tuple[LifecycleEvent, ...] = ()
        self._unsaved: dict[str, AgentRecord] = {}
        self._saving: set[asyncio.Task[None]] = set()
        self._saved = asyncio.Event()

    async def save(self, entry: AgentRecord, *events: LifecycleEvent) -> None:
        """Store the agent and the events. If the disk fails, they are kept and stored with the next
        call, so that no agent ends or appears to run because of it."""
        await self.save_all((entry,), events)

    async def save_all(
        self, entries: Sequence[AgentRecord], events: Sequence[LifecycleEvent]
    ) -> None:
        """Like `save`, for several agents or none."""
        with contextlib.suppress(AdapterError):
            await self.save_or_raise(entries, events)

    async def save_or_raise(
        self, entries: Sequence[AgentRecord], events: Sequence[LifecycleEvent]
    ) -> None:
        """Like `save_all`, but raises the error of the disk."""
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
            log.error("cannot save agents", agent_ids=sorted(unsaved), reason=error.message)
            raise
        self._saved.set()
        self._saved = asyncio.Event()

    def _with_run_ids(self, event: LifecycleEvent) -> LifecycleEvent:
        """Add session and trace of the agent if it is known and the event has none."""
        if event.trace_id or (entry := self.entries.get(event.agent_id)) is None:
            return event
        return replace(event, session_id=entry.session_id, trace_id=entry.trace_id)

    def save_soon(self, entry: AgentRecord, event: LifecycleEvent) -> None:
        """Store the event in the background."""
        task = asyncio.create_task(self.save(entry, event))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def wait_for_record(self) -> None:
        """Return after the next save."""
        await self._saved.wait()

    def notify_ended(self, entry: AgentRecord, directory: Path) -> None:
        """The agent has ended; `directory` is its private one."""
        self.on_ended(entry, directory)


async def _end_nobody(_agent_id: str) -> None:
    """Default until a registry is connected."""


def _ignore(_entry: AgentRecord, _directory: Path) -> None:
    """Default until a registry is connected."""

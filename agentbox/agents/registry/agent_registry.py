"""All agents of this host and the contract calls that need nothing else."""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from agentbox.adapters.runtime.adapter import Page
from agentbox.agents.admission.admit import Requester
from agentbox.agents.authorization.revoker import GrantRevoker
from agentbox.agents.errors import stale_handle
from agentbox.agents.registry.admissions import admit_agent
from agentbox.agents.registry.agent_record import AgentRecord, state_conflict
from agentbox.agents.registry.branch_owner import end_with_branch
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.listing import build_page
from agentbox.agents.registry.retention import retention, surplus_agents
from agentbox.agents.registry.store import REQUEST_SECONDS, RequestKey
from agentbox.agents.runs import exits, home
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.runs.session_runner import SessionRunner, make_runner
from agentbox.agents.streams.attached_readers import AttachedReaders
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import (
    SHUTDOWN_GRACE,
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentKind,
    AgentSpec,
    ExitRecord,
)
from agentbox.core.slot_errors import NotFound, SlotUnavailable

log = structlog.get_logger()


class AgentRegistry:
    """Used by one event loop."""

    def __init__(self, host: HostState) -> None:
        self.host = host
        self.entries = host.entries
        self.runners: dict[str, AgentRunner] = {}
        self.streams: dict[str, StreamLog] = {}
        self._attached: dict[
            str, AttachedReaders
        ] = {}  # of agents whose output waits or has waited for readers
        self._requests: dict[RequestKey, tuple[asyncio.Task[AgentHandle] | AgentHandle, float]] = {}
        self._cleanups: set[asyncio.Task[None]] = set()
        self.closing = False  # no agent is started any more
        host.on_ended = self._on_ended
        end_with_branch(host, self.runners)
        host.authorizations.entries = self.entries
        self.revoker = GrantRevoker(host, self.entries, self.runners)

    async def load(self) -> None:
        """Load what an earlier process stored. Starts nothing."""
        for entry in await self.host.store.entries():
            self.entries[entry.agent_id] = entry
            self.streams[entry.agent_id] = StreamLog.recover(
                self._stream_dir(entry.agent_id), *retention(entry)
            )
            self.streams[entry.agent_id].closed = entry.over or entry.state == "suspended"
        self._requests.update(await self.host.store.requests())
        await self.host.states.load()

    async def spawn(
        self,
        spec: AgentSpec,
        requester: Requester,
        *,
        once: bool = False,
        kind: AgentKind = "agent",
        on_created: Callable[[AgentRunner], None] = lambda runner: None,
        stdin: bytes | None = None,
        attached: bool = False,
    ) -> AgentHandle:
        """Return the agent of that request; repeated requests return the same agent, and `stdin` is
        sent once. Continues if the caller is cancelled. With `attached`, output waits from the
        first byte for a reader. `on_created` is called before the start, and not if the agent
        exists already."""
        key = (requester.request_owner, requester.request_id)
        pending = self._existing_request(key)
        if isinstance(pending, AgentHandle):
            return pending
        if pending is None:
            pending = asyncio.create_task(
                self._create(spec, requester, once, kind, on_created, stdin, attached)
            )
            self._requests[key] = (pending, time.time())
            pending.add_done_callback(lambda task: self._finish_request(key, spec, requester, task))
        return await asyncio.shield(pending)

    def get(self, agent_id: str) -> AgentRecord:
        """Raises NotFound."""
        entry = self.entries.get(agent_id)
        if entry is None:
            raise NotFound(f"cannot find agent {agent_id}", resource="agent", id=agent_id)
        return entry

    def page(self, agent_filter: AgentFilter, limit: int, cursor: str | None) -> Page[AgentInfo]:
        """In order of id, which is the order of creation."""
        return build_page(self.entries.values(), agent_filter, limit, cursor)

    def signal(self, handle: AgentHandle, name: str) -> None:
        """Raises StaleHandle, NotFound, or InvalidTransition if no process runs."""
        entry = self._current(handle)
        if entry.pid is None:
            raise state_conflict(entry, "signalled", "it is not running")
        self.runners[entry.agent_id].signal(signal.Signals[f"SIG{name}"])

    async def terminate(self, handle: AgentHandle, grace: float | None) -> ExitRecord:
        """End the agent permanently; for an ended agent return its stored exit."""
        entry = self._current(handle)
        runner = self.runners.get(entry.agent_id)
        if runner is not None:
            await runner.end(self.host.config.grace_seconds if grace is None else grace)
        if entry.state == "suspended":
            await self._end_suspended(entry)
        return entry.exit or exits.lost_exit()

    async def _end_suspended(self, entry: AgentRecord) -> None:
        if entry.agent_id not in self.runners:
            entry.stop_requested = True
            entry.exit = replace(entry.exit or exits.lost_exit(), reason="terminated")
            self.resume(entry)
        await asyncio.shield(self.runners[entry.agent_id].done)

    def attachable_runner(self, handle: AgentHandle) -> AgentRunner:
        """The runner whose stdin and stdout can be attached now. Raises StaleHandle, NotFound or
        InvalidTransition."""
        entry = self._current(handle)
        runner = self.runners.get(entry.agent_id)
        if runner is None or entry.pid is None:
            raise state_conflict(entry, "attached", "it is not running")
        if runner.stdin is None:
            raise state_conflict(entry, "attached", "its stdin is null")
        if runner.attached:
            raise state_conflict(entry, "attached", "another client is attached")
        return runner

    def attached_readers(self, entry: AgentRecord) -> AttachedReaders:
        """The readers that its output waits for."""
        return self._attached.setdefault(
            entry.agent_id, AttachedReaders(self.streams[entry.agent_id])
        )

    async def close(self) -> None:
        """End every agent, with the grace of the slot or LAST_GRACE, whichever is shorter."""
        grace = min(self.host.config.grace_seconds, SHUTDOWN_GRACE)
        await asyncio.gather(
            *(
                runner.suspend(grace) if isinstance(runner, SessionRunner) else runner.end(grace)
                for runner in self.runners.values()
            )
        )
        while self._cleanups:
            await asyncio.wait(self._cleanups)
        await self.host.denials.flush()

    def resume(self, entry: AgentRecord) -> None:
        """Apply the restart policy to an agent whose last generation has ended."""
        runner = self.runners[entry.agent_id] = make_runner(
            self.host, entry, self.streams[entry.agent_id]
        )
        runner.resume()

    def check_open(self) -> None:
        """Raises SlotUnavailable once no agent is started any more."""
        if self.closing:
            raise SlotUnavailable(
                "cannot start another agent: agent-host is shutting down",
                slot="orchestrator",
                impl="local-process",
                since=None,
            )

    async def _create(
        self,
        spec: AgentSpec,
        requester: Requester,
        once: bool,
        kind: AgentKind,
        on_created: Callable[[AgentRunner], None],
        stdin: bytes | None,
        attached: bool,
    ) -> AgentHandle:
        self.check_open()
        entry, state = admit_agent(self.host, spec, requester, once=once, kind=kind)
        self.entries[entry.agent_id] = entry
        stream = self.streams[entry.agent_id] = StreamLog(
            self._stream_dir(entry.agent_id), *retention(entry)
        )
        if attached:
            stream.hold(0)
        runner = self.runners[entry.agent_id] = make_runner(self.host, entry, stream)
        on_created(runner)
        try:
            await self.host.store.admit(entry, state)
            await runner.start()
            if attached:
                self.attached_readers(entry).start_grace()
            self.revoker.watch(entry)
        except BaseException:
            await self._roll_back(entry)
            raise
        if stdin is not None:
            runner.feed(stdin)
        return AgentHandle(agent_id=entry.agent_id, generation=1)

    async def _roll_back(self, entry: AgentRecord) -> None:
        self.entries.pop(entry.agent_id)
        self.runners.pop(entry.agent_id).done.set_result(None)
        self._attached.pop(entry.agent_id, None)
        self.streams.pop(entry.agent_id).remove()
        home.remove(home.agent_dir(self.host.config.paths, entry.agent_id))
        self.host.reviews.drop(entry.agent_id)
        await self.host.store.roll_back(entry, with_state=self.host.states.roll_back(entry))

    def _existing_request(
        self, key: RequestKey
    ) -> "asyncio.Task[AgentHandle] | AgentHandle | None":
        request = self._requests.get(key)
        if request is None or request[1] <= time.time() - REQUEST_SECONDS:
            return None
        return request[0]

    def _finish_request(
        self,
        key: RequestKey,
        spec: AgentSpec,
        requester: Requester,
        task: "asyncio.Task[AgentHandle]",
    ) -> None:
        """A failed request may be retried; of a successful one only the handle is kept."""
        if task.cancelled() or task.exception() is not None:
            self._requests.pop(key)
            error = None if task.cancelled() else task.exception()
            self.host.denials.on_spawn(
                spec, error, session_id=requester.session_id, trace_id=requester.trace_id
            )
        else:
            self._requests[key] = (task.result(), self._requests[key][1])
        stale = time.time() - REQUEST_SECONDS
        for old in [
            request for request, (_, created_at) in self._requests.items() if created_at <= stale
        ]:
            del self._requests[old]

    def _current(self, handle: AgentHandle) -> AgentRecord:
        entry = self.get(handle.agent_id)
        if entry.generation != handle.generation:
            raise stale_handle(handle, entry.generation)
        return entry

    def _on_ended(self, entry: AgentRecord, directory: Path) -> None:
        self.host.denials.discard(entry.agent_id)
        self.runners.pop(entry.agent_id, None)
        if not entry.over:  # suspended: its directories stay
            return
        self.start_cleanup(self._clean_up(directory))

    def schedule_drop(self) -> None:
        """`drop_surplus` in the background: what is stored of an ended agent has changed."""
        self.start_cleanup(self._drop_surplus())

    def start_cleanup(self, work: Coroutine[Any, Any, None]) -> None:
        """Work after the end of an agent, for which `close` waits."""
        cleanup = asyncio.create_task(work)
        self._cleanups.add(cleanup)
        cleanup.add_done_callback(self._cleanups.discard)

    async def _clean_up(self, directory: Path) -> None:
        try:
            await asyncio.to_thread(home.remove_private, directory)
            await self.host.reviews.clean_up(directory.name)
        except OSError as error:
            path, reason = str(directory), error.strerror
            log.warning("cannot remove a private directory", directory=path, reason=reason)
        await self._drop_surplus()

    async def _drop_surplus(self) -> None:
        surplus = list(surplus_agents(self.host, self.streams))
        for agent_id in surplus:
            del self.entries[agent_id]
            self._attached.pop(agent_id, None)
            self.streams.pop(agent_id).remove()
        if surplus:
            await self.host.store.delete_agents(surplus)

    def _stream_dir(self, agent_id: str) -> Path:
        return self.host.config.state_dir / "streams" / agent_id

"""Every agent that this host knows, and the calls of the contract that need no more than that."""

import asyncio
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import structlog

from agentbox.adapters.runtime.adapter import Page
from agentbox.agents.admission.admitting import Asker, admitted
from agentbox.agents.authorization.revoking import Revoking
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.registry.listing import page_of
from agentbox.agents.registry.store import REQUEST_SECONDS, Request
from agentbox.agents.runs import exits, home
from agentbox.agents.runs.capture import Capture
from agentbox.agents.runs.life import Life
from agentbox.agents.streams.attached import AttachedReaders
from agentbox.agents.streams.log import EVENTS, StreamLog
from agentbox.contracts.orchestrator import LAST_GRACE, AgentFilter, AgentHandle, AgentInfo, AgentSpec, ExitRecord
from agentbox.core.slot_errors import InvalidTransition, NotFound, SlotUnavailable, StaleHandle

log = structlog.get_logger()


class Table:
    """Used by one event loop."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.entries = host.entries
        self.lives: dict[str, Life] = {}
        self.streams: dict[str, StreamLog] = {}
        self._attached: dict[str, AttachedReaders] = {}  # of agents whose output waits, or waited
        self._requests: dict[Request, tuple[asyncio.Task[AgentHandle] | AgentHandle, float]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self.closing = False  # no agent is started any more
        host.on_ended = self._ended
        host.standings.entries = self.entries
        self.revoking = Revoking(host, self.entries, self.lives)

    async def load(self) -> None:
        """What an earlier process of this host kept. Nothing is started yet."""
        for entry in await self.host.store.entries():
            self.entries[entry.agent_id] = entry
            self.streams[entry.agent_id] = StreamLog.recover(self._folder(entry.agent_id), *_kept(entry))
            self.streams[entry.agent_id].closed = entry.over
        self._requests.update(await self.host.store.requests())
        await self.host.states.load()

    async def spawn(
        self, spec: AgentSpec, asker: Asker, *, once: bool = False, capture: Capture | None = None, stdin: bytes | None = None,
        attached: bool = False,
    ) -> AgentHandle:  # fmt: skip
        """The agent of that request: made once, however often it is asked for, and given `stdin` once. Goes on when the
        caller is cancelled. With `attached` its output waits from the first byte for the reader that comes."""
        key = (asker.principal, asker.request_id)
        known = self._known(key)
        if isinstance(known, AgentHandle):
            return known
        if known is None:
            known = asyncio.create_task(self._create(spec, asker, once, capture, stdin, attached))
            self._requests[key] = (known, time.time())
            known.add_done_callback(lambda task: self._settle(key, spec, asker, task))
        return await asyncio.shield(known)

    def get(self, agent_id: str) -> Entry:
        """Raises NotFound."""
        entry = self.entries.get(agent_id)
        if entry is None:
            raise NotFound(f"cannot find agent {agent_id}", resource="agent", id=agent_id)
        return entry

    def page(self, wanted: AgentFilter, limit: int, cursor: str | None) -> Page[AgentInfo]:
        """In order of id, which is the order of creation."""
        return page_of(self.entries.values(), wanted, limit, cursor)

    def signal(self, handle: AgentHandle, name: str) -> None:
        """Raises StaleHandle, NotFound, or InvalidTransition when no process runs."""
        entry = self._current(handle)
        if entry.pid is None:
            raise _refused(entry, "signalled", "no process of it runs")
        self.lives[entry.agent_id].signal(signal.Signals[f"SIG{name}"])

    async def terminate(self, handle: AgentHandle, grace: float | None) -> ExitRecord:
        """Ends it for good; the exit of an agent that is over already is answered as it was."""
        entry = self._current(handle)
        life = self.lives.get(entry.agent_id)
        if life is not None:
            await life.end(self.host.config.grace_seconds if grace is None else grace)
        return entry.exit or exits.lost()

    def attachable(self, handle: AgentHandle) -> Life:
        """The life whose stdin and stdout may be held now. Raises StaleHandle, NotFound or InvalidTransition."""
        entry = self._current(handle)
        life = self.lives.get(entry.agent_id)
        if life is None or entry.pid is None:
            raise _refused(entry, "attached", "no process of it runs")
        if life.stdin is None:
            raise _refused(entry, "attached", "its stdin is null")
        if life.attached:
            raise _refused(entry, "attached", "somebody else is attached")
        return life

    def attached(self, entry: Entry) -> AttachedReaders:
        """Those that its output waits for."""
        return self._attached.setdefault(entry.agent_id, AttachedReaders(self.streams[entry.agent_id]))

    async def close(self) -> None:
        """Ends every agent, in the grace of the slot or LAST_GRACE, whichever is shorter."""
        grace = min(self.host.config.grace_seconds, LAST_GRACE)
        await asyncio.gather(*(life.end(grace) for life in self.lives.values()))
        while self._chores:
            await asyncio.wait(self._chores)
        await self.host.denials.flush()

    def revive(self, entry: Entry) -> None:
        """An agent whose last life is over: its restart policy decides what follows."""
        life = self.lives[entry.agent_id] = Life(self.host, entry, self.streams[entry.agent_id])
        life.resume()

    async def _create(
        self, spec: AgentSpec, asker: Asker, once: bool, capture: Capture | None, stdin: bytes | None, attached: bool
    ) -> AgentHandle:
        if self.closing:
            raise SlotUnavailable(
                "cannot start another agent: agent-host is ending",
                slot="orchestrator",
                impl="local-process",
                since=None,
            )
        entry, state = admitted(self.host, spec, asker, once=once)
        self.entries[entry.agent_id] = entry
        stream = self.streams[entry.agent_id] = StreamLog(self._folder(entry.agent_id), *_kept(entry))
        if attached:
            stream.hold(0)
        life = self.lives[entry.agent_id] = Life(self.host, entry, stream)
        if capture is not None:
            life.capture, capture.life = capture, life
        try:
            await self.host.store.admit(entry, state)
            await life.start()
            if attached:
                self.attached(entry).wait()
            self.revoking.watch(entry)
        except BaseException:
            await self._withdraw(entry)
            raise
        if stdin is not None:
            life.feed(stdin)
        return AgentHandle(agent_id=entry.agent_id, generation=1)

    async def _withdraw(self, entry: Entry) -> None:
        self.entries.pop(entry.agent_id)
        self.lives.pop(entry.agent_id).done.set_result(None)
        self._attached.pop(entry.agent_id, None)
        self.streams.pop(entry.agent_id).remove()
        home.remove(home.of_agent(self.host.config.paths, entry.agent_id))
        self.host.reviews.forget(entry.agent_id)
        await self.host.store.withdraw(entry, with_state=self.host.states.withdraw(entry))

    def _known(self, key: Request) -> "asyncio.Task[AgentHandle] | AgentHandle | None":
        found = self._requests.get(key)
        if found is None or found[1] <= time.time() - REQUEST_SECONDS:
            return None
        return found[0]

    def _settle(self, key: Request, spec: AgentSpec, asker: Asker, task: "asyncio.Task[AgentHandle]") -> None:
        """A request that failed may be made again; one that worked needs only its handle."""
        if task.cancelled() or task.exception() is not None:
            self._requests.pop(key)
            error = None if task.cancelled() else task.exception()
            self.host.denials.on_spawn(spec, error, session_id=asker.session_id, trace_id=asker.trace_id)
        else:
            self._requests[key] = (task.result(), self._requests[key][1])
        stale = time.time() - REQUEST_SECONDS
        for old in [one for one, (_, at) in self._requests.items() if at <= stale]:
            del self._requests[old]

    def _current(self, handle: AgentHandle) -> Entry:
        entry = self.get(handle.agent_id)
        if entry.generation != handle.generation:
            raise StaleHandle(
                f"cannot use generation {handle.generation} of agent {entry.agent_id}: it is at {entry.generation}",
                generation=handle.generation, current=entry.generation,
            )  # fmt: skip
        return entry

    def _ended(self, entry: Entry, folder: Path) -> None:
        self.host.denials.forget(entry.agent_id)
        self.lives.pop(entry.agent_id, None)
        chore = asyncio.create_task(self._tidy(folder))
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)

    async def _tidy(self, folder: Path) -> None:
        try:
            await asyncio.to_thread(home.end, folder)
            await self.host.reviews.tidy(folder.name)
        except OSError as error:
            log.warning("private folder is not removed", folder=str(folder), reason=error.strerror)
        gone = list(self._surplus())
        for agent_id in gone:
            del self.entries[agent_id]
            self._attached.pop(agent_id, None)
            self.streams.pop(agent_id).remove()
        if gone:
            await self.host.store.forget(gone)

    def _surplus(self) -> Iterable[str]:
        """Those that are over for longest, beyond what is kept: one that ran long is as worth looking at as the others."""
        config = self.host.config
        needed = {
            one.agent_id
            for entry in self.entries.values()
            if not entry.over and self.host.standings.has_family(entry)
            for one in self.host.standings.ancestors(entry)
        }
        ended = [one for one in self.entries.values() if one.over and one.agent_id not in needed]
        rows = [(one.agent_id, self.streams[one.agent_id].size, one.spec_size) for one in sorted(ended, key=_ended_at)]
        return beyond(rows, config)

    def _folder(self, agent_id: str) -> Path:
        return self.host.config.state / "streams" / agent_id


def beyond(ended: Sequence[tuple[str, int, int]], config: HostConfig) -> Iterator[str]:
    """Of (id, bytes of output, characters of spec), oldest first, the ids that go so that the rest keeps to all bounds."""
    output, specs = sum(row[1] for row in ended), sum(row[2] for row in ended)
    for index, (agent_id, size, spec) in enumerate(ended):
        few = len(ended) - index <= config.keep_ended
        if few and output <= config.keep_output and specs <= config.keep_specs:
            return
        output, specs = output - size, specs - spec
        yield agent_id


def _kept(entry: Entry) -> tuple[int, int]:
    """Bytes of each stream of output, and events of its life."""
    return entry.limits.stdout or 0, entry.limits.events_kept or EVENTS


def _ended_at(entry: Entry) -> tuple[float, str]:
    """Unix seconds, and the id for those that ended at once."""
    return (0.0 if entry.exit is None else entry.exit.at.timestamp(), entry.agent_id)


def _refused(entry: Entry, to: str, why: str) -> InvalidTransition:
    members: dict[str, Any] = {"id": entry.agent_id, "from": entry.state, "to": to, "blockers": []}
    return InvalidTransition(f"cannot make agent {entry.agent_id} {to}: {why}", **members)

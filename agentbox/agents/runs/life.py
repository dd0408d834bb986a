"""One agent from its first start to its last exit: start, watch, end, start again as its policy says."""

import asyncio
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from agentbox.agents.admission.admission import launch_of
from agentbox.agents.admission.confinement import workspace_of
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.registry.store import Happening
from agentbox.agents.runs import exits, home, restart
from agentbox.agents.runs.capture import Capture
from agentbox.agents.runs.limits import BREACHED, LimitWatch
from agentbox.agents.runs.pump import Pump
from agentbox.agents.runs.stdin import Stdin, StdinClosed
from agentbox.agents.streams.log import StreamLog
from agentbox.contracts.orchestrator import AgentState, ExitRecord, StreamKind
from agentbox.core import clock
from agentbox.core.linux.kernel import boot_id
from agentbox.core.slot_errors import SpawnError
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import Agent
from agentbox.sandbox.report import report
from agentbox.sandbox.spec import Denials

log = structlog.get_logger()


class Life:
    """Drives one entry. `start` once; afterwards `done` tells when the agent is over for good."""

    def __init__(self, host: Host, entry: Entry, stream: StreamLog) -> None:
        self.host, self.entry, self.stream = host, entry, stream
        self.stdin: Stdin | None = None
        self.attached = False
        self.capture: Capture | None = None
        self._limits = LimitWatch(entry, self._at_a_limit)
        self._happened: list[Happening] = []  # saved with the end of this life
        self._unkept = 0  # bytes of output that the disk did not take
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._agent: Agent | None = None
        self._pumps: tuple[Pump, ...] = ()
        self._stop = asyncio.Event()
        self._grace = host.config.grace_seconds
        self._task: asyncio.Task[None] | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._parted = False  # something was taken back since the kernel was told

    async def start(self) -> None:
        """The first start. Raises SpawnError; then nothing is left."""
        await self._spawn("agent.started")
        self._task = asyncio.create_task(self._live(), name=f"agent-{self.entry.agent_id}")

    def feed(self, data: bytes) -> None:
        """Writes the input to the agent's pipe as it reads, then closes it."""
        self._feeding = asyncio.create_task(self._feed(data))

    def let_go(self) -> None:
        """Nobody is attached any more."""
        self.attached = False

    def resume(self) -> None:
        """For an agent whose host died: its last life is over, and the policy applies."""
        self._task = asyncio.create_task(self._go_on(), name=f"agent-{self.entry.agent_id}")

    def signal(self, number: int) -> None:
        """To the leader, or for STOP and CONT to the tree. Nothing happens between two lives."""
        if self._agent is not None:
            self._agent.signal(number)

    async def end(self, grace: float) -> None:
        """Ends the tree and every further life; returns when no process lives."""
        self.entry.stop_requested = True
        self._grace = min(self._grace, grace)
        self._stop.set()
        if self._agent is not None and self.entry.state == "running":
            self._to("stopping")
        if self._agent is not None:
            self._agent.end(grace)
        await asyncio.shield(self.done)

    def part(self) -> None:
        """Ends the tree that runs, which the kernel still lets do what was taken back. The restart policy decides what
        follows."""
        self._parted = True
        if self._agent is not None:
            self._tell("state", {"state": "parted"})
            self._agent.end(self._grace)

    async def asked_to_end(self) -> None:
        """Returns once somebody has called `end`, or the agent is over."""
        await self._stop.wait()

    async def _feed(self, data: bytes) -> None:
        if (stdin := self.stdin) is None:
            return
        try:
            await stdin.write(data)
        except StdinClosed:  # a program need not read its input
            return
        stdin.close()

    async def _live(self) -> None:
        await self._until_end()
        await self._go_on()

    async def _go_on(self) -> None:
        try:
            while await self._again():
                await self._until_end()
        finally:
            self._over()

    async def _spawn(self, event: str) -> None:
        entry, self._parted = self.entry, False
        branch = await self.host.reviews.branch_of(entry, workspace_of(entry, self.host.config), self._copying())
        token = self.host.standings.mint(entry)  # known before the process that holds it
        try:
            launch = launch_of(entry, self.host.config, self.host.mark, token, branch)
            agent = await self.host.launcher.spawn(launch, stdin=entry.spec.stdin)
        except SpawnFailed as error:
            self.host.standings.end(entry)
            raise SpawnError(error.message, hint=error.hint, stage=error.stage) from error
        except BaseException:
            self.host.standings.end(entry)
            raise
        entry.delivered = self.stream.last
        self._adopt(agent)
        entry.pid, entry.start_ticks, entry.boot_id = agent.started.pid, agent.started.start_ticks, boot_id()
        entry.started_at, entry.isolation = clock.now(), report(launch, agent.started.measured)
        self._to("running", pid=entry.pid)
        if self._stop.is_set() or self._parted:  # while it started
            agent.end(self._grace)
        await self.host.save(
            entry, self._happening(event, pid=entry.pid, request_id=entry.request_id, state_id=entry.state_id)
        )

    def _adopt(self, agent: Agent) -> None:
        self._agent = agent
        self._limits.begin(agent)
        agent.on_denied = self._denied
        self.stdin = None if agent.stdin is None else Stdin(agent.stdin)
        self._pumps = (
            Pump(agent.stdout, partial(self._keep, "stdout"), partial(self.stream.full, "stdout")),
            Pump(agent.stderr, partial(self._keep, "stderr"), partial(self.stream.full, "stderr")),
        )
        self.stream.on_room = self._room

    def _room(self) -> None:
        for pump in self._pumps:
            pump.resume()

    def _denied(self, denials: Denials) -> None:
        found = (denials.rule, denials.count, denials.detail, denials.signature)
        self.host.denials.on_denied(self.entry.agent_id, "reaper", *found)

    def _keep(self, kind: StreamKind, data: bytes) -> None:
        """Stores output. A disk that takes none costs the output, never the agent, and is told once at its end."""
        if self.capture is not None:
            self.capture.add(kind, data)
        try:
            self.stream.append(kind, self.entry.generation, data)
        except OSError as error:
            if not self._unkept:
                log.error("output is not kept", agent_id=self.entry.agent_id, reason=error.strerror)
            self._unkept += len(data)

    async def _until_end(self) -> None:
        assert self._agent is not None
        ended = await self._agent.ended
        self._agent = None
        self.host.standings.end(self.entry)
        for pump in self._pumps:
            pump.finish()
        self.stream.on_room, self._pumps = None, ()  # the stream outlives this object
        if self.stdin is not None:
            self.stdin.close()
        if self._unkept:
            self._tell("state", {"state": "unkept", "bytes": self._unkept})
            self._unkept = 0
        self.entry.pid = None
        self.entry.ending = True
        self.entry.exit = exits.exit_record(ended, stop_requested=self.entry.stop_requested)
        self._limits.end(ended.breach, timeout=ended.cause == "timeout")

    async def _again(self) -> bool:
        """Decides after an end. True once the next life runs; False when there will be none."""
        while (wait := self._pause()) is not None:
            await self._record_end(wait)
            if await self._stopped_within(wait / self.host.config.clock_scale):
                self.entry.exit = replace(self._exit(), reason="terminated", at=clock.now())
                break
            if await self._restart():
                return True
        await self._record_end(None)
        return False

    def _pause(self) -> float | None:
        """Seconds until the next start, None when there is none."""
        entry, end = self.entry, self._exit()
        if entry.stop_requested or not restart.wanted(entry.spec.restart, end):
            return None
        now = time.time()
        lived = now - entry.started_at.timestamp() if entry.started_at else 0.0
        wait = restart.delay(entry.restarts, now, lived, restart.Pace.of(entry.holding.restart))
        if wait is None:
            entry.exit = replace(end, reason="restart-intensity")
        return wait

    async def _restart(self) -> bool:
        entry = self.entry
        entry.generation += 1
        entry.restart_count += 1
        entry.restarts = [*entry.restarts, time.time()][-restart.Pace.of(entry.holding.restart).max_restarts :]
        self._to("starting")
        try:
            await self._spawn("agent.restarted")
        except SpawnError as error:
            log.warning("agent does not start again", agent_id=entry.agent_id, reason=error.message)
            self.host.denials.on_spawn(entry.spec, error, entry.agent_id)
            entry.exit = replace(exits.lost(), reason="exit", code=127)
            return False
        return True

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True

    def _copying(self) -> Callable[[int], None]:
        """Told from other threads how far the copy of a large workspace is."""
        loop = asyncio.get_running_loop()

        def told(files: int) -> None:
            loop.call_soon_threadsafe(self._tell, "state", {"state": "copying", "files": files})

        return told

    async def _record_end(self, wait: float | None) -> None:
        entry, end = self.entry, self._exit()
        if wait is None and (review := await self.host.reviews.seal(entry)) is not None:
            self._tell("state", {"state": "review", **review})
        entry.state = exits.final_state(end) if wait is None else "backoff"
        entry.over = wait is None
        told: dict[str, Any] = {"state": entry.state} if wait is None else {"state": "backoff", "seconds": wait}
        self._tell("state", told)
        self._tell("exit", end.to_wire())
        entry.ending = False
        event = "agent.lost" if end.reason == "lost" else "agent.exited"
        happened, self._happened = self._happened, []
        over = self._happening(event, exit=end.to_wire(), state=entry.state, quiet=deepcopy(entry.quiet))
        await self.host.save(entry, *happened, over)

    def _over(self) -> None:
        self._stop.set()
        self.stream.close()
        if not self.done.done():
            self.done.set_result(None)
        self.host.ended(self.entry, home.of_agent(self.host.config.paths, self.entry.agent_id))

    def _exit(self) -> ExitRecord:
        assert self.entry.exit is not None
        return self.entry.exit

    def _to(self, state: AgentState, **more: Any) -> None:
        self.entry.state = state
        self._tell("state", {"state": state, **more})

    def _tell(self, kind: StreamKind, what: Mapping[str, Any]) -> None:
        try:
            self.stream.tell(kind, self.entry.generation, what)
        except OSError as error:
            log.error("state is not kept", agent_id=self.entry.agent_id, reason=error.strerror, what=what)

    def _at_a_limit(self, event: str, what: Mapping[str, Any]) -> None:
        self._tell("state", {"state": "limit" if event == BREACHED else "near-limit", **what})
        if event == BREACHED:
            self._happened.append(self._happening(event, **what))
        else:
            self.host.note(self.entry, self._happening(event, **what))

    def _happening(self, event: str, **data: Any) -> Happening:
        entry = self.entry
        common = {"name": entry.spec.name, "generation": entry.generation, "profile": entry.spec.profile}
        return Happening(event, entry.agent_id, {**common, **data})

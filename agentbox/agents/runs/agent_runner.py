"""Runs one agent from its first start to its last exit: start, watch, end, restart by its
policy."""

import asyncio
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import structlog

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.runs import exits, home, restart
from agentbox.agents.runs.confinement import workspace_path
from agentbox.agents.runs.launch_spec import build_launch
from agentbox.agents.runs.limits import BREACHED, LimitWatch
from agentbox.agents.runs.open_sandbox import OpenSandbox
from agentbox.agents.runs.output import OutputRecorder
from agentbox.agents.runs.stdin import Stdin, StdinClosed
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import AgentState, ExitRecord
from agentbox.core import clock
from agentbox.core.linux.kernel import boot_id
from agentbox.core.slot_errors import SpawnError
from agentbox.manifest.tables.agents import RestartTable
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import AgentProcess
from agentbox.sandbox.report import report
from agentbox.sandbox.spec import SyscallDenials

log = structlog.get_logger()


class AgentRunner:
    """Runs one entry. Call `start` once; `done` is set when the agent has ended permanently."""

    def __init__(self, host: HostState, entry: AgentRecord, stream: StreamLog) -> None:
        self.host, self.entry, self.stream = host, entry, stream
        self.stdin: Stdin | None = None
        self.attached = False
        self.output = OutputRecorder(entry, stream)
        self._limits = LimitWatch(entry, self._on_limit)
        self._pending_events: list[LifecycleEvent] = []  # saved with the end of this generation
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._process: AgentProcess | None = None
        self._opened: OpenSandbox | None = None
        self._stop = asyncio.Event()
        self._grace = host.config.grace_seconds
        self._task: asyncio.Task[None] | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._revoked = False  # a right was revoked that the kernel still enforces

    async def start(self) -> None:
        """The first start. Raises SpawnError and leaves nothing behind."""
        await self._spawn("agent.started")
        self._task = asyncio.create_task(self._run(), name=f"agent-{self.entry.agent_id}")

    def feed(self, data: bytes) -> None:
        """Write the data to the agent's stdin in the background, then close it."""
        self._feeding = asyncio.create_task(self._feed(data))

    @property
    def sandbox(self) -> OpenSandbox | None:
        """What programs are started in; None if it has ended or is about to."""
        return None if self._process is None or self._must_end else self._opened

    @property
    def _must_end(self) -> bool:
        return self._stop.is_set() or self._revoked

    def detach(self) -> None:
        """Allow another client to attach."""
        self.attached = False

    def resume(self) -> None:
        """Apply the restart policy to an agent whose host died."""
        self._task = asyncio.create_task(
            self._run_generations(), name=f"agent-{self.entry.agent_id}"
        )

    def signal(self, number: int) -> None:
        """Signal the leader, or for STOP and CONT the tree. Does nothing between two
        generations."""
        if self._process is not None:
            self._process.signal(number)

    async def end(self, grace: float) -> None:
        """End the tree and prevent restarts; return when no process runs."""
        self.entry.stop_requested = True
        self._grace = min(self._grace, grace)
        self._stop.set()
        if self._process is not None and self.entry.state == "running":
            self._set_state("stopping")
        if self._process is not None:
            self._process.end(grace)
        await asyncio.shield(self.done)

    def end_generation(self) -> None:
        """End the running tree, for which the kernel still enforces revoked rights. The restart
        policy applies."""
        self._revoked = True
        if self._process is not None:
            self.output.append_item("state", {"state": "revoked"})
            self._process.end(self._grace)

    async def wait_for_stop(self) -> None:
        """Return once `end` was called or the agent has ended."""
        await self._stop.wait()

    async def _feed(self, data: bytes) -> None:
        if (stdin := self.stdin) is None:
            return
        try:
            await stdin.write(data)
        except StdinClosed:  # a program need not read its input
            return
        stdin.close()

    async def _run(self) -> None:
        await self._wait_for_exit()
        await self._run_generations()

    async def _run_generations(self) -> None:
        try:
            while await self._next_generation():
                await self._wait_for_exit()
        finally:
            self._finish()

    async def _spawn(self, event_type: str) -> None:
        entry, self._revoked = self.entry, False
        branch = await self.host.reviews.open_branch(
            entry, workspace_path(entry, self.host.config), self._copy_progress()
        )
        token = self.host.authorizations.issue_token(entry)  # published before its process exists
        try:
            launch = build_launch(entry, self.host.config, self.host.mark, token, branch)
            process = await self.host.launcher.spawn(launch, stdin=entry.spec.stdin)
        except SpawnFailed as error:
            self.host.authorizations.revoke_token(entry)
            raise SpawnError(error.message, hint=error.hint, stage=error.stage) from error
        except BaseException:
            self.host.authorizations.revoke_token(entry)
            raise
        entry.delivered = self.stream.last
        self._opened = OpenSandbox(process, launch, branch.objects if branch else ())
        self._adopt(process)
        started = process.started  # of a sandbox: without a pid and without measurements
        entry.pid, entry.boot_id = started.pid or None, boot_id()
        entry.start_ticks, entry.started_at = started.start_ticks, clock.now()
        entry.isolation = report(launch, started.measured) if started.measured else {}
        self._set_state("running", pid=entry.pid)
        if self._must_end:  # requested during the start
            process.end(self._grace)
        await self.host.save(
            entry,
            self._lifecycle_event(
                event_type, pid=entry.pid, request_id=entry.request_id, state_id=entry.state_id
            ),
        )

    def _adopt(self, process: AgentProcess) -> None:
        self._process = process
        self._limits.begin(process)
        process.on_denied = self._on_denied
        self.stdin = None if process.stdin is None else Stdin(process.stdin)
        self.output.begin(process)

    def _on_denied(self, denials: SyscallDenials) -> None:
        denial = (denials.rule, denials.count, denials.detail, denials.signature)
        self.host.denials.on_denied(self.entry.agent_id, "reaper", *denial)

    async def _wait_for_exit(self) -> None:
        assert self._process is not None
        ended = await self._process.ended
        self._process = None
        self.host.authorizations.revoke_token(self.entry)
        self.output.end()
        if self.stdin is not None:
            self.stdin.close()
        self.entry.pid = None
        self.entry.exit_pending = True
        self.entry.exit = exits.exit_record(ended, stop_requested=self.entry.stop_requested)
        self._limits.end(ended.breach, timeout=ended.cause == "timeout")
        await self.host.end_branch_users(self.entry.agent_id)

    async def _next_generation(self) -> bool:
        """Restart after an end if the policy permits. True once the next generation runs."""
        while (delay := self._restart_delay()) is not None:
            await self._record_end(delay)
            if await self._stopped_within(delay / self.host.config.clock_scale):
                self.entry.exit = replace(self._exit_record(), reason="terminated", at=clock.now())
                break
            if await self._restart():
                return True
        await self._record_end(None)
        return False

    def _restart_delay(self) -> float | None:
        """Seconds until the next start; None if there is none."""
        entry, end = self.entry, self._exit_record()
        if entry.stop_requested or not restart.should_restart(entry.spec.restart, end):
            return None
        now = time.time()
        uptime = now - entry.started_at.timestamp() if entry.started_at else 0.0
        delay = restart.delay(entry.restarts, now, uptime, RestartTable(**entry.grant_set.restart))
        if delay is None:
            entry.exit = replace(end, reason="restart-intensity")
        return delay

    async def _restart(self) -> bool:
        entry = self.entry
        entry.generation += 1
        entry.restart_count += 1
        entry.restarts = [*entry.restarts, time.time()][
            -RestartTable(**entry.grant_set.restart).max_restarts :
        ]
        self._set_state("starting")
        try:
            await self._spawn("agent.restarted")
        except SpawnError as error:
            log.warning("cannot restart agent", agent_id=entry.agent_id, reason=error.message)
            self.host.denials.on_spawn(entry.spec, error, entry.agent_id)
            entry.exit = replace(exits.lost_exit(), reason="exit", code=127)
            return False
        return True

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True

    def _copy_progress(self) -> Callable[[int], None]:
        """A callback for the progress of a large copy; other threads may call it."""
        loop = asyncio.get_running_loop()

        def report_progress(files: int) -> None:
            loop.call_soon_threadsafe(
                self.output.append_item, "state", {"state": "copying", "files": files}
            )

        return report_progress

    async def _record_end(self, delay: float | None) -> None:
        entry, end = self.entry, self._exit_record()
        if delay is None and (review := await self.host.reviews.seal(entry)) is not None:
            self.output.append_item("state", {"state": "review", **review})
        entry.state = exits.final_state(end) if delay is None else "backoff"
        entry.over = delay is None
        item: dict[str, Any] = (
            {"state": entry.state} if delay is None else {"state": "backoff", "seconds": delay}
        )
        self.output.append_item("state", item)
        self.output.append_item("exit", end.to_wire())
        entry.exit_pending = False
        event_type = "agent.lost" if end.reason == "lost" else "agent.exited"
        pending, self._pending_events = self._pending_events, []
        exit_event = self._lifecycle_event(
            event_type, exit=end.to_wire(), state=entry.state, quiet=deepcopy(entry.quiet)
        )
        await self.host.save(entry, *pending, exit_event)

    def _finish(self) -> None:
        self._stop.set()
        self.stream.close()
        if not self.done.done():
            self.done.set_result(None)
        self.host.notify_ended(
            self.entry, home.agent_dir(self.host.config.paths, self.entry.agent_id)
        )

    def _exit_record(self) -> ExitRecord:
        assert self.entry.exit is not None
        return self.entry.exit

    def _set_state(self, state: AgentState, **more: Any) -> None:
        self.entry.state = state
        self.output.append_item("state", {"state": state, **more})

    def _on_limit(self, event_type: str, details: Mapping[str, Any]) -> None:
        self.output.append_item(
            "state", {"state": "limit" if event_type == BREACHED else "limit-warning", **details}
        )
        if event_type == BREACHED:
            self._pending_events.append(self._lifecycle_event(event_type, **details))
        else:
            self.host.save_soon(self.entry, self._lifecycle_event(event_type, **details))

    def _lifecycle_event(self, event_type: str, **data: Any) -> LifecycleEvent:
        entry, spec = self.entry, self.entry.spec
        common = {"name": spec.name, "generation": entry.generation, "profile": spec.profile}
        return LifecycleEvent(event_type, entry.agent_id, {**common, **data})

"""The programs of one sandbox: numbers, how many at the same time, which ended ones are kept."""

import asyncio
import shutil
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.sandbox_events import argv_digest, sandbox_exec
from agentbox.agents.review.branch import WORK
from agentbox.agents.review.reviews import uses_branch
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.sandboxes.exec_checks import MAX_SHOWN, shown_command
from agentbox.agents.sandboxes.exec_run import ExecRun
from agentbox.agents.sandboxes.files import make_upload_path
from agentbox.agents.sandboxes.program_launch import ProgramConfinements, program_launch
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.sandboxes import ExecInfo
from agentbox.core import clock
from agentbox.core.slot_errors import (
    ExecLimit,
    NotFound,
    SandboxOver,
    invalid_transition,
)
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.report import report

# What is kept of ended programs: so many, and bytes of their output.
KEPT_EXECS, KEPT_OUTPUT = 32, 64 << 20
_HELD_BYTES = 8 << 20
# Seconds from the end of a program to its event: those of several are saved together, since a save
# costs as much as a program. A killed agent-host loses them.
_DELAY = 0.25


class SandboxPrograms:
    """`runner` is that of the sandbox while it runs, `stream` its own. In the directory of that,
    `exec` has a directory for each program."""

    def __init__(
        self, host: HostState, entry: AgentRecord, runner: AgentRunner | None, stream: StreamLog
    ) -> None:
        self._host, self._entry, self._runner = host, entry, runner
        self._stream, self._directory = stream, stream.directory / "exec"
        self._execs: dict[int, ExecRun] = {}
        self._last = 0
        self._requests: dict[tuple[str, str], int] = {}  # number by principal and request id
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._events: list[LifecycleEvent] = []  # not saved yet
        self._dropped: list[Path] = []  # directories, not removed yet
        self._timer: asyncio.TimerHandle | None = None
        self._confinements = ProgramConfinements()

    def recover(self) -> None:
        """Loads what an earlier agent-host stored."""
        if not self._directory.is_dir():
            return
        numbers = (int(one.name) for one in self._directory.iterdir() if one.name.isdecimal())
        for n in sorted(numbers):
            self._last = n
            if (run := ExecRun.recover(self._directory / str(n))) is not None:
                self._execs[n] = run

    @property
    def started(self) -> int:
        """The number of the last program."""
        return self._last

    def infos(self) -> tuple[ExecInfo, ...]:
        """By number."""
        return tuple(run.info for run in self._execs.values())

    def get(self, n: int) -> ExecRun:
        """Raises NotFound."""
        if (run := self._execs.get(n)) is None:
            raise NotFound(
                f"cannot find program {n} of sandbox {self._entry.agent_id}",
                resource="exec",
                id=str(n),
            )
        return run

    async def exec(
        self,
        argv: tuple[str, ...],
        *,
        request: tuple[str, str],
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes | None,
        interactive: bool,
        timeout_s: float,
        max_output: int,
    ) -> ExecRun:
        """Returns when the program has started, or could not be started. `request`: the principal
        and its request id; repeated calls return the same program. Raises SandboxOver,
        ExecLimit."""
        if (known := self._requests.get(request)) is not None:
            return self._execs[known]
        sandbox = None if self._runner is None else self._runner.sandbox
        if sandbox is None:
            raise self.over()
        self._check_number()
        self._last = n = self._last + 1
        info = ExecInfo(n=n, argv=shown_command(argv), cwd=cwd[:MAX_SHOWN], started_at=clock.now())
        run = self._execs[n] = ExecRun(
            self._directory / str(n),
            info,
            max_output,
            held=self._held_bytes() if interactive else 0,
        )
        self._requests[request], run.is_interactive = n, interactive
        try:
            launch = program_launch(
                sandbox, self._confinements, self._entry, self._host.config, argv, cwd, env
            )
            await run.start(
                sandbox.process.start_program(
                    launch, stdin="pipe" if interactive or stdin else "null"
                )
            )
        except Exception as error:
            del self._execs[n], self._requests[request]
            failure = self.over() if isinstance(error, SpawnFailed) else error
            run.fail(failure)
            raise failure from error
        if run.measured and not self._entry.isolation:
            self._entry.isolation = report(launch, run.measured)
        if stdin and run.stdin is not None:
            run.feed(stdin, keep_open=interactive)
        task = asyncio.create_task(run.run(timeout_s, self._host.config.grace_seconds))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_end, run, argv_digest(argv)))
        return run

    def signal(self, n: int, number: int) -> None:
        """Raises NotFound, InvalidTransition."""
        run = self.get(n)
        if run.info.exit is not None:
            raise invalid_transition(
                f"program {n} cannot be signalled: it has ended",
                str(n),
                from_state="exited",
                to_state="signalled",
            )
        run.signal(number)

    def roots(self) -> Mapping[str, Path]:
        """Directories of the running sandbox by the first name of a path: its branch, if it has
        one, and its temporary directory. Raises SandboxOver."""
        sandbox = None if self._runner is None else self._runner.sandbox
        if sandbox is None:
            raise self.over()
        directory = Path(sandbox.launch.private)
        branch = {"workspace": directory / WORK} if uses_branch(self._entry) else {}
        return {**branch, "tmp": directory / "tmp"}

    def upload_path(self, upload: str) -> Path:
        """In a directory that no program reaches, and that goes with the sandbox."""
        return make_upload_path(self._directory.parent / "uploads", upload)

    def open(self, runner: AgentRunner) -> None:
        """The sandbox runs again. `close` has returned since it ended."""
        self._runner, self._confinements = runner, ProgramConfinements()

    async def close(self, runner: AgentRunner | None = None) -> None:
        """The sandbox has ended: so have its programs. Returns when their ends are stored. Does
        nothing if it runs again, with another runner than `runner`."""
        while self._tasks and self._is_current(runner):
            await asyncio.wait(self._tasks)
        if not self._is_current(runner):
            return
        for run in self._execs.values():
            run.close()
        self._runner = None
        self._follow_up()
        while self._background:
            await asyncio.wait(self._background)
        shutil.rmtree(self._directory.parent / "uploads", ignore_errors=True)
        self._stream.recount()

    def _schedule_follow_up(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self._follow_up)

    def _follow_up(self) -> None:
        """What need not be done before the next program starts, for several of them together."""
        self._timer = None
        events, self._events = self._events, []
        if events:
            self._start(self._host.save_all((), events))
        dropped, self._dropped = self._dropped, []
        if dropped:
            self._start(asyncio.to_thread(_remove, dropped))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """In the background; `close` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _held_bytes(self) -> int:
        """What is kept of the output of a session's agent for its reader: a whole message, and what
        is written while the reader is away. 0: a program that is not one."""
        is_session = self._entry.kind == "session"
        return self._host.config.acp.max_message + _HELD_BYTES if is_session else 0

    def _is_current(self, runner: AgentRunner | None) -> bool:
        return runner is None or self._runner in (None, runner)

    def over(self) -> SandboxOver:
        """The error of a call that needs a running sandbox."""
        is_suspended = self._entry.state == "suspended"
        return SandboxOver(
            f"cannot use sandbox {self._entry.agent_id}: it "
            f"{'is suspended' if is_suspended else 'has ended'}",
            hint="resume its session"
            if is_suspended
            else "create another one; `agentbox review` has its changes",
            id=self._entry.agent_id,
        )

    def _check_number(self) -> None:
        running = sum(run.info.exit is None for run in self._execs.values())
        cap = self._host.config.sandboxes.max_exec
        if running >= cap:
            raise ExecLimit(
                f"cannot run another program: {running} of at most {cap} run in this sandbox",
                hint="wait for one to end, or raise sandboxes.max_exec in agentbox.toml",
                id=self._entry.agent_id,
                observed=running,
                cap=cap,
            )

    def _on_end(self, run: ExecRun, digest: str, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        task.result()
        self._events.append(sandbox_exec(self._entry, run.info, digest))
        self._schedule_follow_up()
        self.drop_surplus()
        lingering = [run for run in self._ended() if run.has_open_pipes]
        for run in lingering[: -self._host.config.sandboxes.max_exec]:
            run.close()

    @contextmanager
    def keep(self, run: ExecRun) -> Iterator[None]:
        """Its result is not dropped meanwhile, however many bytes others have, and whether or not
        the sandbox ends."""
        run.waiting, self._stream.waiting = run.waiting + 1, self._stream.waiting + 1
        try:
            yield
        finally:
            run.waiting, self._stream.waiting = run.waiting - 1, self._stream.waiting - 1
            self.drop_surplus()

    @property
    def is_over(self) -> bool:
        """Whether the sandbox has ended."""
        return self._runner is None

    def drop_surplus(self) -> None:
        """Drops the oldest ended programs with their output, but for what a caller waits for."""
        count, size = 0, 0
        for run in self._execs.values():
            if run.info.exit is not None:
                count, size = count + 1, size + run.stored_bytes
        if count <= KEPT_EXECS and size <= KEPT_OUTPUT:
            return
        for run in self._ended():
            if not run.is_needed:
                count, size = count - 1, size - run.stored_bytes
                self._drop(run)
            if count <= KEPT_EXECS and size <= KEPT_OUTPUT:
                return

    def _ended(self) -> list[ExecRun]:
        """The ended programs, longest ended first."""
        ended = (run for run in self._execs.values() if run.info.exit is not None)
        return sorted(ended, key=attrgetter("ended_at"))

    def _drop(self, run: ExecRun) -> None:
        run.close()
        del self._execs[run.info.n]
        self._requests = {key: n for key, n in self._requests.items() if n != run.info.n}
        self._dropped.append(run.stream.directory)
        self._schedule_follow_up()


def _remove(directories: Iterable[Path]) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)

"""Watches the programs of a boot until every required one is ready. No polling: notes by inotify,
exits by pidfd.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from agentbox.box.seal.readiness_poller import ReadinessPoller
from agentbox.box.supervision.notify import read_note
from agentbox.box.supervision.rpc import ProcessState, SupervisorClient
from agentbox.core.linux import procfs
from agentbox.core.linux.inotify import MOVED_TO, Inotify
from agentbox.core.paths import Paths
from agentbox.plan.model import Program

# seconds between requests until supervisord has noticed what the kernel reported
_POLL_SECONDS = 0.01
_EXIT_TIMEOUT = 3.0
_STARTSECS_MARGIN = (
    0.02  # seconds after startsecs, when supervisord has changed STARTING into RUNNING
)
_ENDED_STATES = ("EXITED", "BACKOFF", "FATAL", "STOPPED", "UNKNOWN")


class ProgramDied(Exception):
    """A required program ended before all were ready."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason


class TimedOut(Exception):
    """The deadline passed; `waiting` are the names that were not ready."""

    def __init__(self, waiting: Sequence[str]) -> None:
        super().__init__(*waiting)
        self.waiting = tuple(waiting)


@dataclass(frozen=True)
class ProgramReady:
    """A ready program. `ready` is a time of CLOCK_BOOTTIME in seconds, None when unknown."""

    name: str
    pid: int
    start_ticks: int
    ready: float | None


class ProgramWatcher:
    """Waits for a fixed set of required programs. A context manager; `on_status` gets (program,
    status) for each change.
    """

    def __init__(
        self,
        paths: Paths,
        required: Sequence[Program],
        deadline: float,
        on_status: Callable[[str, str], None],
    ) -> None:
        self._paths = paths
        self._required = {program.name: program for program in required}
        self._deadline = deadline  # time.monotonic
        self._on_status = on_status
        self._client = SupervisorClient(paths)
        self._ready_programs: dict[str, ProgramReady] = {}
        self._states: Mapping[str, ProcessState] = {}
        # pid and start time at the first check
        self._first_processes: dict[str, tuple[int, int]] = {}
        self._pidfds: dict[int, str] = {}
        self._poll = select.poll()
        self._stack = contextlib.ExitStack()
        self._inotify = Inotify()
        self._readiness_poller = ReadinessPoller()

    def __enter__(self) -> Self:
        self._stack.callback(self._inotify.close)
        self._inotify.watch(self._paths.ready_dir, MOVED_TO)
        self._poll.register(self._inotify.fd, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def until_ready(self) -> list[ProgramReady]:
        """The required programs in the plan's order. Raises ProgramDied or TimedOut."""
        self._states = self._client.states()
        for name in self._required:
            self._open_pidfd(name)
        while waiting := self._pending_programs():
            self._wait(waiting)
        self._confirm()
        return [self._ready_programs[name] for name in self._required]

    def states(self) -> Mapping[str, ProcessState]:
        """The last response of supervisord, for every program."""
        return self._states

    def ready_programs(self) -> Mapping[str, ProgramReady]:
        """The required programs that are ready so far."""
        return self._ready_programs

    def first_process(self, name: str) -> tuple[int, int]:
        """Pid and start time of a program at the first check; zeros when it does not run."""
        if any(self._first_processes.get(name, ())):
            return self._first_processes[name]
        if name in self._ready_programs:
            return self._ready_programs[name].pid, self._ready_programs[name].start_ticks
        pid = self._states[name].pid if name in self._states else 0
        return pid, procfs.start_ticks(pid) or 0

    def _open_pidfd(self, name: str) -> None:
        """Opens a pidfd for the process that supervisord reported; a program that has ended already
        is handled immediately.
        """
        state = self._states.get(name)
        if state is None or (state.state in _ENDED_STATES and not self._has_succeeded(name, state)):
            raise ProgramDied(
                name, "supervisord does not run it" if state is None else _describe_exit(state)
            )
        self._first_processes[name] = state.pid, procfs.start_ticks(state.pid) or 0
        if name in self._ready_programs:
            return
        try:
            descriptor = os.pidfd_open(state.pid)
        except ProcessLookupError:
            self._handle_exit(name)
            return
        self._stack.callback(os.close, descriptor)
        self._pidfds[descriptor] = name
        self._poll.register(descriptor, select.POLLIN)
        self._on_status(name, state.state)

    def _pending_programs(self) -> list[str]:
        for name, program in self._required.items():
            if name not in self._ready_programs and (ready := self._check_ready(program)):
                self._ready_programs[name] = ready
                self._on_status(name, "READY")
        return [name for name in self._required if name not in self._ready_programs]

    def _check_ready(self, program: Program) -> ProgramReady | None:
        pid = self._states[program.name].pid
        ticks = procfs.start_ticks(pid)
        if ticks is None or program.ready.by == "exit0":
            return None
        if program.ready.by == "notify":
            note = read_note(self._paths, program.name)
            return (
                ProgramReady(program.name, pid, ticks, _to_boottime(note.mono))
                if note and note.is_written_by(pid)
                else None
            )
        stable_since = (
            procfs.ticks_to_seconds(ticks)
            + program.startsecs
            + (_STARTSECS_MARGIN if program.startsecs else 0)
        )
        if program.ready.by == "state":
            return (
                ProgramReady(program.name, pid, ticks, stable_since)
                if procfs.now() >= stable_since
                else None
            )
        return (
            ProgramReady(program.name, pid, ticks, procfs.now())
            if self._readiness_poller.is_ready(program)
            else None
        )

    def _wait(self, waiting: Sequence[str]) -> None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimedOut(waiting)
        for descriptor, _event in self._poll.poll(min(remaining, self._pause(waiting)) * 1000):
            if descriptor == self._inotify.fd:
                self._inotify.read_names()
            else:
                self._poll.unregister(descriptor)
                self._handle_exit(self._pidfds[descriptor])

    def _pause(self, waiting: Sequence[str]) -> float:
        """The poll timeout; only programs without events need one."""
        pauses = [self._readiness_poller.pause(self._required[name]) for name in waiting]
        for name in waiting:
            program = self._required[name]
            if program.ready.by == "state":
                pauses.append(
                    max(program.startsecs + _STARTSECS_MARGIN - self._age(name), _POLL_SECONDS)
                )
        return min(pauses)

    def _age(self, name: str) -> float:
        ticks = procfs.start_ticks(self._states[name].pid)
        return 0.0 if ticks is None else procfs.now() - procfs.ticks_to_seconds(ticks)

    def _handle_exit(self, name: str) -> None:
        """Handles the exit of a process: asks supervisord until it has noticed. Raises ProgramDied
        unless the exit was planned.
        """
        died = procfs.now()
        previous = self._states[name]
        deadline = time.monotonic() + _EXIT_TIMEOUT
        state = previous
        while (
            state.pid == previous.pid
            and state.state not in _ENDED_STATES
            and time.monotonic() < deadline
        ):
            self._states = self._client.states()
            state = self._states[name]
            if state.state not in _ENDED_STATES and state.pid == previous.pid:
                time.sleep(_POLL_SECONDS)
        if not self._has_succeeded(name, state):
            raise ProgramDied(name, _describe_exit(state))
        self._ready_programs[name] = self._finished_program(name, died)
        self._on_status(name, "DONE")

    def _has_succeeded(self, name: str, state: ProcessState) -> bool:
        succeeded = (
            self._required[name].ready.by == "exit0"
            and state.state == "EXITED"
            and state.exitstatus == 0
        )
        if succeeded:
            self._ready_programs.setdefault(name, self._finished_program(name, procfs.now()))
        return succeeded

    def _finished_program(self, name: str, moment: float) -> ProgramReady:
        """A program that ran to its end. One that ended before its start time could be read may
        have left a note.
        """
        note = read_note(self._paths, name)
        pid, ticks = self._first_processes.get(name, (0, 0))
        if note is None or (pid and (ticks or note.pid != pid)):
            return ProgramReady(name, pid, ticks, moment)
        return ProgramReady(name, note.pid, note.start_ticks, _to_boottime(note.mono))

    def _confirm(self) -> None:
        """Checks with supervisord that all are RUNNING with the same pids. Raises ProgramDied or
        TimedOut.
        """
        while True:
            self._states = self._client.states()
            starting = [name for name in self._required if not self._is_confirmed(name)]
            if not starting:
                return
            if time.monotonic() > self._deadline:
                raise TimedOut(starting)
            time.sleep(_POLL_SECONDS)

    def _is_confirmed(self, name: str) -> bool:
        state, running = self._states[name], self._ready_programs[name]
        if self._required[name].ready.by == "exit0":
            return True
        if state.state in _ENDED_STATES or state.pid != running.pid:
            raise ProgramDied(name, _describe_exit(state))
        return state.state == "RUNNING"


def _to_boottime(mono: float) -> float:
    return procfs.now() - (time.monotonic() - mono)


def _describe_exit(state: ProcessState) -> str:
    if (
        state.spawn_error and not state.exitstatus
    ):  # supervisord reports a bad exit status as a spawn error, too
        return f"it could not be started: {state.spawn_error}"
    if state.state in ("STARTING", "RUNNING"):
        return "supervisord has restarted it"
    return f"state {state.state}, exit status {state.exitstatus}"

"""Watches the programs of a boot until every required one is ready. No polling: notes by inotify, deaths by pidfd."""

import contextlib
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from agentbox.box.seal.knock import Knocker
from agentbox.box.supervision.notify import read_note
from agentbox.box.supervision.rpc import ProcessState, SupervisorClient
from agentbox.core.linux import procfs
from agentbox.core.linux.inotify import MOVED_TO, Inotify
from agentbox.core.paths import Paths
from agentbox.plan.model import Program

_ASK_AGAIN = 0.01  # seconds, while supervisord has not yet noticed what the kernel already told
_NOTICED_WITHIN = 3.0
_SETTLED = 0.02  # seconds past startsecs, when supervisord has changed STARTING into RUNNING
_GONE = ("EXITED", "BACKOFF", "FATAL", "STOPPED", "UNKNOWN")


class ProgramDied(Exception):
    """A required program ended before everything was ready."""

    def __init__(self, name: str, how: str) -> None:
        super().__init__(name, how)
        self.name = name
        self.how = how


class TimedOut(Exception):
    """The deadline passed; `waiting` are the names that were not ready."""

    def __init__(self, waiting: Sequence[str]) -> None:
        super().__init__(*waiting)
        self.waiting = tuple(waiting)


@dataclass(frozen=True)
class Running:
    """A program as it was found. `ready` is a moment of CLOCK_BOOTTIME in seconds, None when nothing tells."""

    name: str
    pid: int
    start_ticks: int
    ready: float | None


class Watch:
    """Waits for a fixed set of required programs. A context manager; `told` hears (program, status) as it changes."""

    def __init__(self, paths: Paths, required: Sequence[Program], end: float, told: Callable[[str, str], None]) -> None:
        self._paths = paths
        self._required = {program.name: program for program in required}
        self._end = end  # time.monotonic
        self._told = told
        self._client = SupervisorClient(paths)
        self._running: dict[str, Running] = {}
        self._states: Mapping[str, ProcessState] = {}
        self._first: dict[str, tuple[int, int]] = {}  # pid and start time when first seen
        self._pidfds: dict[int, str] = {}
        self._poll = select.poll()
        self._stack = contextlib.ExitStack()
        self._notes = Inotify()
        self._knocker = Knocker()

    def __enter__(self) -> Self:
        self._stack.callback(self._notes.close)
        self._notes.watch(self._paths.ready_dir, MOVED_TO)
        self._poll.register(self._notes.fd, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def until_ready(self) -> list[Running]:
        """The required programs in the plan's order. Raises ProgramDied or TimedOut."""
        self._states = self._client.states()
        for name in self._required:
            self._follow(name)
        while waiting := self._waiting():
            self._sleep(waiting)
        self._confirm()
        return [self._running[name] for name in self._required]

    def states(self) -> Mapping[str, ProcessState]:
        """What supervisord said last, of every program."""
        return self._states

    def running(self) -> Mapping[str, Running]:
        """The required programs that are ready so far."""
        return self._running

    def first_seen(self, name: str) -> tuple[int, int]:
        """Pid and start time of a program as supervisord had it at first, zeros when it ran not or no more."""
        if any(self._first.get(name, ())):
            return self._first[name]
        if name in self._running:
            return self._running[name].pid, self._running[name].start_ticks
        pid = self._states[name].pid if name in self._states else 0
        return pid, procfs.start_ticks(pid) or 0

    def _follow(self, name: str) -> None:
        """Opens a pidfd on the process that supervisord named; a program that has ended already is judged at once."""
        state = self._states.get(name)
        if state is None or (state.state in _GONE and not self._ended_well(name, state)):
            raise ProgramDied(name, "supervisord does not run it" if state is None else _how(state))
        self._first[name] = state.pid, procfs.start_ticks(state.pid) or 0
        if name in self._running:
            return
        try:
            descriptor = os.pidfd_open(state.pid)
        except ProcessLookupError:
            self._judge_end(name)
            return
        self._stack.callback(os.close, descriptor)
        self._pidfds[descriptor] = name
        self._poll.register(descriptor, select.POLLIN)
        self._told(name, state.state)

    def _waiting(self) -> list[str]:
        for name, program in self._required.items():
            if name not in self._running and (found := self._ready(program)):
                self._running[name] = found
                self._told(name, "READY")
        return [name for name in self._required if name not in self._running]

    def _ready(self, program: Program) -> Running | None:
        pid = self._states[program.name].pid
        ticks = procfs.start_ticks(pid)
        if ticks is None or program.ready.by == "exit0":
            return None
        if program.ready.by == "notify":
            note = read_note(self._paths, program.name)
            return Running(program.name, pid, ticks, _boottime(note.mono)) if note and note.is_of(pid) else None
        settled = procfs.seconds_of(ticks) + program.startsecs + (_SETTLED if program.startsecs else 0)
        if program.ready.by == "state":
            return Running(program.name, pid, ticks, settled) if procfs.now() >= settled else None
        return Running(program.name, pid, ticks, procfs.now()) if self._knocker.answers(program) else None

    def _sleep(self, waiting: Sequence[str]) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimedOut(waiting)
        for descriptor, _event in self._poll.poll(min(left, self._pause(waiting)) * 1000):
            if descriptor == self._notes.fd:
                self._notes.names()
            else:
                self._poll.unregister(descriptor)
                self._judge_end(self._pidfds[descriptor])

    def _pause(self, waiting: Sequence[str]) -> float:
        """Only programs that cannot tell by themselves need a clock."""
        pauses = [self._knocker.pause(self._required[name]) for name in waiting]
        for name in waiting:
            program = self._required[name]
            if program.ready.by == "state":
                pauses.append(max(program.startsecs + _SETTLED - self._age(name), _ASK_AGAIN))
        return min(pauses)

    def _age(self, name: str) -> float:
        ticks = procfs.start_ticks(self._states[name].pid)
        return 0.0 if ticks is None else procfs.now() - procfs.seconds_of(ticks)

    def _judge_end(self, name: str) -> None:
        """A process has ended. Asks supervisord how, until it has noticed. Raises ProgramDied unless it ended as planned."""
        died = procfs.now()
        before = self._states[name]
        end = time.monotonic() + _NOTICED_WITHIN
        state = before
        while state.pid == before.pid and state.state not in _GONE and time.monotonic() < end:
            self._states = self._client.states()
            state = self._states[name]
            if state.state not in _GONE and state.pid == before.pid:
                time.sleep(_ASK_AGAIN)
        if not self._ended_well(name, state):
            raise ProgramDied(name, _how(state))
        self._running[name] = self._ended(name, died)
        self._told(name, "DONE")

    def _ended_well(self, name: str, state: ProcessState) -> bool:
        well = self._required[name].ready.by == "exit0" and state.state == "EXITED" and state.exitstatus == 0
        if well:
            self._running.setdefault(name, self._ended(name, procfs.now()))
        return well

    def _ended(self, name: str, moment: float) -> Running:
        """A program that ran to its end. One that ended before its start time could be read may have left a note."""
        note = read_note(self._paths, name)
        pid, ticks = self._first.get(name, (0, 0))
        if note is None or (pid and (ticks or note.pid != pid)):
            return Running(name, pid, ticks, moment)
        return Running(name, note.pid, note.start_ticks, _boottime(note.mono))

    def _confirm(self) -> None:
        """supervisord's own word once the set is complete: RUNNING, the same pids. Raises ProgramDied or TimedOut."""
        while True:
            self._states = self._client.states()
            starting = [name for name in self._required if not self._confirmed(name)]
            if not starting:
                return
            if time.monotonic() > self._end:
                raise TimedOut(starting)
            time.sleep(_ASK_AGAIN)

    def _confirmed(self, name: str) -> bool:
        state, running = self._states[name], self._running[name]
        if self._required[name].ready.by == "exit0":
            return True
        if state.state in _GONE or state.pid != running.pid:
            raise ProgramDied(name, _how(state))
        return state.state == "RUNNING"


def _boottime(mono: float) -> float:
    return procfs.now() - (time.monotonic() - mono)


def _how(state: ProcessState) -> str:
    if state.spawn_error and not state.exitstatus:  # supervisord words a bad exit status as an error of the spawn, too
        return f"it could not be started: {state.spawn_error}"
    if state.state in ("STARTING", "RUNNING"):
        return "supervisord has started it again"
    return f"state {state.state}, exit status {state.exitstatus}"

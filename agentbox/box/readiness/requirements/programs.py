"""`program:<name> not running (state=<STATE>)`: each required program runs and has notified since
its start.

The next check reports an exit, even if the program has been restarted by then.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from agentbox.box.readiness.directory_events import DirectoryEvents
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.box.supervision.notify import read_note
from agentbox.box.supervision.rpc import (
    ProcessState,
    ShuttingDown,
    SupervisorClient,
    SupervisorUnavailable,
)
from agentbox.core.background.daemon_threads import DaemonThreadRunner
from agentbox.core.linux import procfs
from agentbox.core.linux.inotify import MOVED_TO
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program

_UNKNOWN = "UNKNOWN"
_STARTING = "STARTING"  # runs, but has not notified since its start
_EXITED = "EXITED"  # the kernel knows it, supervisord not yet
_RETRY_SECONDS = (0.02, 0.05)  # seconds; the request makes supervisord check its programs


@dataclass
class _WatchedProcess:
    pid: int
    ticks: int
    descriptor: int


class ProgramsRequirement(Requirement):
    """Asks supervisord every second; a pidfd of each program reports its exit immediately."""

    family = "programs"
    period = 1.0

    def __init__(self, paths: Paths, plan: Plan) -> None:
        self._paths = paths
        self._programs = tuple(program for program in plan.required_programs if not program.once)
        self._client = SupervisorClient(paths)
        self._query: DaemonThreadRunner[dict[str, ProcessState]] = DaemonThreadRunner(
            "readiness-programs"
        )
        self._watched: dict[str, _WatchedProcess] = {}
        self._died_programs: set[str] = set()  # exited since the last completed check
        self._wake: Wake | None = None
        self._events: DirectoryEvents | None = None
        self._states: Mapping[str, ProcessState] = {}

    @property
    def states(self) -> Mapping[str, str]:
        """All programs with supervisord's state, as of the last check."""
        return {name: state.state for name, state in self._states.items()}

    @property
    def processes(self) -> Mapping[str, ProcessState]:
        """All programs with pid and start, as of the last check."""
        return self._states

    async def check(self) -> tuple[str, ...]:
        for pause in (*_RETRY_SECONDS, None):
            try:
                self._states = await self._query(self._client.states)
            except ShuttingDown:
                return ()  # reported as `draining`
            except SupervisorUnavailable:
                self._states = {}
            if pause is None or not self._is_settling():
                break
            await asyncio.sleep(pause)
        missing = tuple(text for program in self._programs if (text := self._missing(program)))
        self._died_programs.clear()
        return missing

    def _is_settling(self) -> bool:
        """True while a program has notified, but supervisord has not set it to RUNNING yet."""
        starting = [name for name, state in self._states.items() if state.state == _STARTING]
        return any(
            (note := read_note(self._paths, name)) and note.is_written_by(self._states[name].pid)
            for name in starting
        )

    def missing_on_timeout(self) -> tuple[str, ...]:
        return tuple(_missing_text(program.name, _UNKNOWN) for program in self._programs)

    def attach(self, wake: Wake) -> None:
        self._events = DirectoryEvents(self._paths.ready_dir, MOVED_TO, lambda _names: wake())
        self._wake = wake

    def detach(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None
        for name in list(self._watched):
            self._unwatch(name)
        self._wake = None

    def _missing(self, program: Program) -> str:
        state = self._state(program)
        if state == "RUNNING" and program.name in self._died_programs:
            state = _EXITED
        return "" if state == "RUNNING" else _missing_text(program.name, state)

    def _state(self, program: Program) -> str:
        process = self._states.get(program.name)
        if process is None:
            return _UNKNOWN
        if process.state != "RUNNING":
            return process.state
        if not procfs.is_alive(process.pid):
            return _EXITED
        self._watch(program.name, process.pid)
        if program.ready.by == "notify":
            note = read_note(self._paths, program.name)
            if note is None or not note.is_written_by(process.pid):
                return _STARTING
        return process.state

    def _watch(self, name: str, pid: int) -> None:
        """One pidfd per program, renewed after a restart."""
        ticks = procfs.start_ticks(pid)
        watched = self._watched.get(name)
        if (
            self._wake is None
            or ticks is None
            or (watched and (watched.pid, watched.ticks) == (pid, ticks))
        ):
            return
        if watched:
            self._died_programs.add(name)
        self._unwatch(name)
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._wake()
            return
        self._watched[name] = _WatchedProcess(pid, ticks, descriptor)
        asyncio.get_running_loop().add_reader(descriptor, self._on_death, name)

    def _on_death(self, name: str) -> None:
        self._unwatch(name)
        self._died_programs.add(name)
        if self._wake is not None:
            self._wake()

    def _unwatch(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is not None:
            asyncio.get_running_loop().remove_reader(watched.descriptor)
            os.close(watched.descriptor)


def _missing_text(name: str, state: str) -> str:
    return f"program:{name} not running (state={state})"

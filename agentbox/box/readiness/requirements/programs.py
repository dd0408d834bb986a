"""`program:<name> not running (state=<STATE>)`: each required program runs, and has said so since it was started.

A death is told by the next check, even where the program is back by then.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from agentbox.box.readiness.folder_events import FolderEvents
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.box.supervision.notify import read_note
from agentbox.box.supervision.rpc import ProcessState, ShuttingDown, SupervisorClient, SupervisorUnavailable
from agentbox.core.background.daemon_threads import InThread
from agentbox.core.linux import procfs
from agentbox.core.linux.inotify import MOVED_TO
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program

_UNKNOWN = "UNKNOWN"
_STARTING = "STARTING"  # runs, but has not notified since it was started
_EXITED = "EXITED"  # the kernel knows, supervisord not yet
_SETTLING = (0.02, 0.05)  # seconds; the question itself makes supervisord look at its programs


@dataclass
class _Followed:
    pid: int
    ticks: int
    descriptor: int


class ProgramsRequirement(Requirement):
    """Asks supervisord every second; a pidfd of each program tells its death at once."""

    family = "programs"
    period = 1.0

    def __init__(self, paths: Paths, plan: Plan) -> None:
        self._paths = paths
        self._programs = tuple(program for program in plan.required_programs if not program.once)
        self._client = SupervisorClient(paths)
        self._ask: InThread[dict[str, ProcessState]] = InThread("readiness-programs")
        self._followed: dict[str, _Followed] = {}
        self._fallen: set[str] = set()  # died since the last check that was answered
        self._wake: Wake | None = None
        self._notes: FolderEvents | None = None
        self._states: Mapping[str, ProcessState] = {}

    @property
    def states(self) -> Mapping[str, str]:
        """Every program and supervisord's word for it, as of the last check."""
        return {name: state.state for name, state in self._states.items()}

    @property
    def processes(self) -> Mapping[str, ProcessState]:
        """Every program with its pid and start, as of the last check."""
        return self._states

    async def check(self) -> tuple[str, ...]:
        for pause in (*_SETTLING, None):
            try:
                self._states = await self._ask(self._client.states)
            except ShuttingDown:
                return ()  # told as `draining`
            except SupervisorUnavailable:
                self._states = {}
            if pause is None or not self._settling():
                break
            await asyncio.sleep(pause)
        missing = tuple(text for program in self._programs if (text := self._missing(program)))
        self._fallen.clear()
        return missing

    def _settling(self) -> bool:
        """True while a program has notified, and supervisord is about to call it RUNNING."""
        starting = [name for name, state in self._states.items() if state.state == _STARTING]
        return any((note := read_note(self._paths, name)) and note.is_of(self._states[name].pid) for name in starting)

    def late(self) -> tuple[str, ...]:
        return tuple(_text(program.name, _UNKNOWN) for program in self._programs)

    def attach(self, wake: Wake) -> None:
        self._notes = FolderEvents(self._paths.ready_dir, MOVED_TO, lambda _names: wake())
        self._wake = wake

    def detach(self) -> None:
        if self._notes is not None:
            self._notes.close()
            self._notes = None
        for name in list(self._followed):
            self._forget(name)
        self._wake = None

    def _missing(self, program: Program) -> str:
        state = self._state(program)
        if state == "RUNNING" and program.name in self._fallen:
            state = _EXITED
        return "" if state == "RUNNING" else _text(program.name, state)

    def _state(self, program: Program) -> str:
        found = self._states.get(program.name)
        if found is None:
            return _UNKNOWN
        if found.state != "RUNNING":
            return found.state
        if not procfs.alive(found.pid):
            return _EXITED
        self._follow(program.name, found.pid)
        if program.ready.by == "notify":
            note = read_note(self._paths, program.name)
            if note is None or not note.is_of(found.pid):
                return _STARTING
        return found.state

    def _follow(self, name: str, pid: int) -> None:
        """One pidfd a program, renewed when it was restarted."""
        ticks = procfs.start_ticks(pid)
        known = self._followed.get(name)
        if self._wake is None or ticks is None or (known and (known.pid, known.ticks) == (pid, ticks)):
            return
        if known:
            self._fallen.add(name)
        self._forget(name)
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._wake()
            return
        self._followed[name] = _Followed(pid, ticks, descriptor)
        asyncio.get_running_loop().add_reader(descriptor, self._died, name)

    def _died(self, name: str) -> None:
        self._forget(name)
        self._fallen.add(name)
        if self._wake is not None:
            self._wake()

    def _forget(self, name: str) -> None:
        known = self._followed.pop(name, None)
        if known is not None:
            asyncio.get_running_loop().remove_reader(known.descriptor)
            os.close(known.descriptor)


def _text(name: str, state: str) -> str:
    return f"program:{name} not running (state={state})"

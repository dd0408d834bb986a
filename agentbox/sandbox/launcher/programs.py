"""The programs of one sandbox, as its reaper sees them: started by the same steps as an agent, any
number of times, until the sandbox ends.

Each has a socket of its own to the host. Over it come the launch as a line and then orders
(`signal`, `end`); back go `started` or `failed`, and `exited`. A program is the process that was
started, with its descendants and those of its session; a process that has left both stays until the
sandbox ends.
"""

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from typing import Any

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.agent_process import uses_default_filter
from agentbox.sandbox.launcher.pending_process import PendingProcess, StartFailed, deliver_order
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.spec import Launch
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_server import NotificationServer

_BLOCK = 1 << 16
_FREEZE_ROUNDS = 50
_FORK_DELAY = 0.005  # seconds after a start, so that the program goes first


class Program:
    """One of them. `stdio` is closed once it has been handed on."""

    def __init__(self, control: socket.socket, stdio: tuple[int, int, int]) -> None:
        control.setblocking(False)
        self.control, self.stdio = control, stdio
        self.is_waiting = True  # for its launch
        self.buffer = bytearray()
        self.leader = 0
        self.has_exited = False
        self.kill_at: float | None = None  # when the rest of it is killed

    def send(self, message: Mapping[str, Any]) -> None:
        """A message is short: the socket has room for all of them."""
        with contextlib.suppress(OSError):  # the host has closed its end
            self.control.send(json.dumps(message).encode() + b"\n")

    def close_stdio(self) -> None:
        for fd in self.stdio:
            os.close(fd)
        self.is_waiting = False

    def members(self) -> list[tree.Process]:
        """Its living processes. Of an exited leader the number may have been reused."""
        table, own = tree.scan(), set[int]()
        if not self.has_exited:
            own = {row.pid for row in tree.descendants(table, [self.leader])} | {self.leader}
        return [
            row
            for row in tree.descendants(table, [os.getpid()])
            if (row.session == self.leader or row.pid in own) and row.state not in "ZX"
        ]

    def kill(self) -> None:
        """All of its processes. They are stopped before: it may be a fork bomb."""
        stopped: set[int] = set()
        rows: list[tree.Process] = []
        for _ in range(_FREEZE_ROUNDS):
            rows = self.members()
            fresh = [row for row in rows if row.pid not in stopped]
            if not fresh:
                break
            tree.signal_processes(fresh, signal.SIGSTOP)
            stopped |= {row.pid for row in fresh}
        tree.signal_processes(rows, signal.SIGKILL)


class Programs:
    """`launch` is that of the sandbox. `spare`: a process that waits for a program, as one always
    does but for a moment after each start. `server` answers the calls of all. `poll` is that of the
    reaper's loop.
    """

    def __init__(
        self,
        launch: Launch,
        spare: PendingProcess | None,
        server: NotificationServer | None,
        locks: int,
        box_tasks: BoxTasks,
    ) -> None:
        self.poll = select.poll()
        self._server, self._locks, self._box_tasks = server, locks, box_tasks
        self._forks_ahead = uses_default_filter(launch)
        self._fork_at: float | None = None
        self._spare: PendingProcess | None = None
        self._set_spare(spare)
        self._by_fd: dict[int, Program] = {}  # by descriptor of the control socket
        self._is_closed = False

    def add(self, control: int, stdio: tuple[int, int, int]) -> None:
        """A program whose launch has come over its own socket, or follows there."""
        program = Program(socket.socket(fileno=control), stdio)
        self._by_fd[control] = program
        self.poll.register(control, select.POLLIN)
        self.on_readable(control)

    def on_readable(self, fd: int) -> None:
        """Reads launch or orders; does nothing for another descriptor."""
        if (program := self._by_fd.get(fd)) is None:
            return
        try:
            data = program.control.recv(_BLOCK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:  # the host no longer wants it
            self._forget(program)
            return
        program.buffer += data
        *lines, program.buffer = program.buffer.split(b"\n")
        for line in lines:
            if program.is_waiting:
                self._start(program, bytes(line) + b"\n")
            else:
                self._execute(program, json.loads(line))

    def on_exit(self, pid: int, status: int) -> None:
        """A child of the reaper was reaped."""
        if self._spare is not None and pid == self._spare.pid:
            self._spare.close()
            self._set_spare(None)
        for program in self._by_fd.values():
            if program.leader == pid and not program.has_exited:
                program.has_exited = True
                program.send({"event": "exited", "status": status})
                return

    def next_deadline(self) -> float | None:
        """In the time of `time.monotonic`."""
        moments = [one.kill_at for one in self._by_fd.values() if one.kill_at is not None]
        moments += [] if self._fork_at is None else [self._fork_at]
        return min(moments, default=None)

    def check_deadlines(self) -> None:
        """Kills what had to end by itself; forks the next spare."""
        now = time.monotonic()
        if self._fork_at is not None and now >= self._fork_at:
            self._fork_at = None
            self._fork_spare()
        for program in self._by_fd.values():
            if program.kill_at is not None and now >= program.kill_at:
                program.kill_at = None
                program.kill()

    def close(self) -> None:
        """No further program is started. Idempotent."""
        self._is_closed, self._fork_at = True, None
        if self._spare is not None:
            self._spare.close()
            self._set_spare(None)

    def _start(self, program: Program, line: bytes) -> None:
        try:
            if self._is_closed:
                raise StartFailed({"stage": "sandbox", "errno": 0, "why": "the sandbox ends"})
            if self._server is not None:
                self._server.forks.start_program()
            spare = self._spare
            self._set_spare(None)
            if self._forks_ahead:
                self._fork_at = time.monotonic() + _FORK_DELAY
            pending, launch = deliver_order(spare, line, program.stdio)
            executed = pending.run_until_exec(launch, self._locks, self._box_tasks, self._server)
        except DeniedCall as error:
            self._report_failure(program, "limits", error.detail)
        except StartFailed as error:
            program.close_stdio()
            program.send({"event": "failed", **error.report})
        else:
            program.close_stdio()
            program.leader = pending.pid
            row = tree.read_process(pending.pid)
            ids = {"pid": pending.pid, "start_ticks": row.start_ticks if row else 0}
            program.send({"event": "started", **ids, "measured": executed.measured})

    def _fork_spare(self) -> None:
        """Without a process left, the next start forks, and reports it."""
        if self._server is None or self._spare is not None:
            return
        with contextlib.suppress(OSError):
            spare = PendingProcess(preforked=True)
            spare.warm_up_in(self._server)
            self._set_spare(spare)

    def _set_spare(self, spare: PendingProcess | None) -> None:
        self._spare = spare
        if self._server is not None:
            self._server.forks.uncounted = 0 if spare is None else 1

    def _report_failure(self, program: Program, stage: str, reason: str) -> None:
        program.close_stdio()
        program.send({"event": "failed", "stage": stage, "errno": 0, "why": reason})

    def _execute(self, program: Program, order: Mapping[str, Any]) -> None:
        if not program.leader:
            return
        match order["do"]:
            case "signal" if not program.has_exited:  # once reaped, the pid may be reused
                tree.signal_process(program.leader, order["signal"])
            case "tree":
                tree.signal_processes(program.members(), order["signal"])
            case "end":
                program.kill_at = time.monotonic() + order["grace"]
                rows = program.members()
                tree.signal_processes(rows, signal.SIGTERM)
                tree.signal_processes(rows, signal.SIGCONT)

    def _forget(self, program: Program) -> None:
        """The host has read how it ended, or gives it up: then it is killed."""
        fd = program.control.fileno()
        self.poll.unregister(fd)
        del self._by_fd[fd]
        program.control.close()
        if program.is_waiting:
            program.close_stdio()
        elif program.leader and (not program.has_exited or program.kill_at is not None):
            program.kill()

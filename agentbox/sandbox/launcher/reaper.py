"""The parent of one agent: starts it, executes its host's orders, and exits only when no process of
the tree is left.

A child subreaper: processes that the agent double-forks or moves to a session of their own become
its children. It ends the tree when the launcher dies (SIGTERM by parent death), when the host dies
(its control socket closes), on a limit breach (SIGUSR1) and at the deadline. Runs in a fork of the
launcher; single-threaded.
"""

import contextlib
import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, NoReturn

from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import tree, warmup
from agentbox.sandbox.launcher.pending_process import PendingProcess, StartFailed
from agentbox.sandbox.launcher.reaper_priority import ReaperPriority
from agentbox.sandbox.launcher.signal_fd import open_signal_fd
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.spec import Cause, Launch
from agentbox.sandbox.syscalls.notification_server import NotificationServer

_LINE = 1 << 16
_FDS = 4  # control, stdin, stdout, stderr


def main(
    orders: socket.socket, launcher_pid: int, locks: int, box_tasks: BoxTasks, *, preforked: bool
) -> NoReturn:
    """Never returns: exits with 0 once the tree is empty, or when `orders` closes without an order.
    All reapers share the file `locks` and `box_tasks`. `preforked`: the order comes later.
    """
    code = 1
    try:
        kernel.become_subreaper()
        kernel.set_parent_death_signal(signal.SIGTERM)
        reaper = Reaper(locks, box_tasks)
        if os.getppid() == launcher_pid:
            _serve_agent(orders, reaper, preforked)
        tree.kill_children()
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def _serve_agent(orders: socket.socket, reaper: "Reaper", preforked: bool) -> None:
    """Performs the agent-independent steps before it reads the order."""
    pending = None
    with contextlib.suppress(
        OSError
    ):  # no process left: retried, and reported, when the order comes
        pending = PendingProcess(preforked=preforked)
        if preforked:
            warmup.warm_reaper(partial(pending.warm_up, locks=reaper.locks))
    data, fds, _, _ = socket.recv_fds(orders, 1, _FDS)
    orders.close()
    if data:
        reaper.run(socket.socket(fileno=fds[0]), pending, (fds[1], fds[2], fds[3]))


class Reaper:
    """The reaper of one agent."""

    control: socket.socket

    def __init__(self, locks: int = -1, box_tasks: BoxTasks | None = None) -> None:
        self.locks = locks
        self.box_tasks = box_tasks or BoxTasks()
        self.notification_server: NotificationServer | None = (
            None  # answers the agent's system calls
        )
        self.buffer = bytearray()
        self.leader = 0
        self.status: int | None = None
        self.cause: Cause = ""
        self.deadline: float | None = None  # when the tree is ended
        self.kill_at: float | None = None  # when a terminating tree is killed
        self.grace = 5.0
        self.signal_fd = open_signal_fd()

    def run(
        self, control: socket.socket, pending: PendingProcess | None, stdio: tuple[int, int, int]
    ) -> None:
        """Starts the agent and supervises it to the end. `control`: the socket to its host."""
        self.control = control
        line = self._read_order()
        if line is None:
            return
        signal.signal(signal.SIGTERM, self._launcher_died)
        signal.signal(signal.SIGUSR1, self._limit_crossed)
        try:
            pending, launch = _deliver_order(pending, line, stdio)
            priority = ReaperPriority(launch)
            self._start(pending, launch, stdio)
        except StartFailed as error:
            self._send({"event": "failed", **error.report})
            return
        self.grace = launch.grace_seconds
        if launch.wall_seconds:
            self.deadline = time.monotonic() + launch.wall_seconds
        self._run_loop(priority)
        tree.kill_children()
        self._report_denials(flush=True)
        self._send({"event": "exited", "status": self.status, "cause": self.cause})

    def _start(self, pending: PendingProcess, launch: Launch, stdio: tuple[int, int, int]) -> None:
        self.leader = pending.pid
        executed = pending.run_until_exec(launch, self.locks, self.box_tasks)
        for fd in stdio:
            os.close(fd)
        self.notification_server = executed.notification_server
        row = tree.read_process(self.leader)
        started = {
            "pid": self.leader,
            "start_ticks": row.start_ticks if row else 0,
            "reaper": os.getpid(),
        }
        self._send({"event": "started", **started, "measured": executed.measured})

    def _run_loop(self, priority: ReaperPriority) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.signal_fd, select.POLLIN)
        if self.notification_server is not None:
            poll.register(self.notification_server, select.POLLIN)
        while not self._is_finished():
            for fd, _ in poll.poll(self._poll_timeout()):
                if fd == self.signal_fd.fileno():
                    self.signal_fd.recv(_LINE)
                    self._reap()
                elif fd == self.control.fileno():
                    self._handle_commands()
            self._serve_notifications()
            self._report_denials()
            self._check_deadlines()
            priority.poll()

    def _serve_notifications(self) -> None:
        if self.notification_server is not None:
            self.notification_server.serve()

    def _report_denials(self, *, flush: bool = False) -> None:
        for denials in (
            self.notification_server.pop_due(flush=flush)
            if self.notification_server is not None
            else ()
        ):
            self._send({"event": "denied", **asdict(denials)})

    def _is_finished(self) -> bool:
        """The leader has exited and, if the tree is terminating, the grace period is over or no
        process is left.
        """
        if self.status is None:
            return False
        return self.kill_at is None or time.monotonic() >= self.kill_at or not tree.has_children()

    def _poll_timeout(self) -> int | None:
        now = time.monotonic()
        timeouts = [moment - now for moment in (self.deadline, self.kill_at) if moment is not None]
        if (
            self.notification_server is not None
            and (next_poll := self.notification_server.next_poll()) is not None
        ):
            timeouts.append(next_poll)
        return max(0, int(min(timeouts) * 1000) + 1) if timeouts else None

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if self.kill_at is not None and now >= self.kill_at:
            self._kill()
        elif self.deadline is not None and now >= self.deadline:
            self.deadline, self.cause = None, "timeout"
            self._terminate(self.grace)

    def _handle_commands(self) -> None:
        data = self._receive()
        if not data:  # the host has exited
            self._kill()
            return
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        # A repeated `end` needs only one scan of all processes.
        for line, next_line in zip(lines, [*lines[1:], None], strict=True):
            order = json.loads(line)
            if order["do"] != "end" or line != next_line:
                self._execute(order)

    def _execute(self, order: Mapping[str, Any]) -> None:
        number = order.get("signal", 0)
        match order["do"]:
            case "signal" if self.status is None:  # once reaped, the pid may be reused
                tree.signal_process(self.leader, number)
            case "tree" if number == signal.SIGSTOP:
                tree.freeze(os.getpid())
            case "tree":
                tree.signal_processes(tree.quick_descendants(os.getpid()), number)
            case "end":
                self._terminate(order["grace"])

    def _terminate(self, grace: float) -> None:
        kill_at = time.monotonic() + grace
        if self.kill_at is None or kill_at < self.kill_at:
            self.kill_at = kill_at
        rows = tree.quick_descendants(os.getpid())
        tree.signal_processes(rows, signal.SIGTERM)
        tree.signal_processes(rows, signal.SIGCONT)  # a stopped process must handle TERM too

    def _kill(self) -> None:
        """Kills the leader now; `run` kills the rest. Waits for the leader, so that its status is
        the real one.
        """
        if self.status is None:
            self.status = self._kill_leader()
        self.kill_at = time.monotonic()

    def _kill_leader(self) -> int:
        tree.signal_process(self.leader, signal.SIGKILL)
        return os.waitpid(self.leader, 0)[1]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.leader and self.status is None:
                    self.status = status

    def _launcher_died(self, *_: object) -> None:
        self.cause = "launcher"
        self._kill_soon()

    def _limit_crossed(self, *_: object) -> None:
        self.cause = "limit"
        self._kill_soon()

    def _kill_soon(self) -> None:
        self.kill_at = (
            time.monotonic()
        )  # the wake-up descriptor ends the poll; the loop does the rest

    def _read_order(self) -> bytes | None:
        while b"\n" not in self.buffer:
            data = self._receive()
            if not data:
                return None
            self.buffer += data
        line, newline, remaining = bytes(self.buffer).partition(b"\n")
        self.buffer = bytearray(remaining)
        return line + newline

    def _receive(self) -> bytes:
        """What the host sent; empty once it has exited."""
        try:
            return self.control.recv(_LINE)
        except ConnectionResetError:
            return b""

    def _send(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the host has exited
            self.control.sendall(json.dumps(message).encode() + b"\n")


def _deliver_order(
    preforked: PendingProcess | None, line: bytes, stdio: tuple[int, int, int]
) -> tuple[PendingProcess, Launch]:
    """Sends the launch to the waiting process, or to a new one; returns that process. Raises
    StartFailed.
    """
    try:
        pending = preforked or PendingProcess(preforked=False)
        pending.send_order(line, stdio)
        launch = Launch.from_line(line)
        if pending.has_exited(launch):
            pending = PendingProcess(preforked=False)
            pending.send_order(line, stdio)
    except OSError as error:
        raise StartFailed({"stage": "launcher", "errno": error.errno, "why": "fork"}) from error
    return pending, launch

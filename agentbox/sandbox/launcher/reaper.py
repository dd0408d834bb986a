"""The parent of one agent, or of the programs of one sandbox: starts it, executes its host's
orders, and exits only when no process of the tree is left.

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
from agentbox.sandbox.launcher.order_socket import FDS, OrderSocket
from agentbox.sandbox.launcher.pending_process import (
    PendingProcess,
    StartFailed,
    deliver_order,
    make_server,
)
from agentbox.sandbox.launcher.programs import Programs
from agentbox.sandbox.launcher.reaper_priority import ReaperPriority
from agentbox.sandbox.launcher.signal_fd import open_signal_fd
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.spec import Cause, Launch
from agentbox.sandbox.syscalls.notification_server import NotificationServer

_SIGNALS = 1 << 12  # bytes


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
    data, fds, _, _ = socket.recv_fds(orders, 1, FDS)
    orders.close()
    if data:
        reaper.run(socket.socket(fileno=fds[0]), pending, (fds[1], fds[2], fds[3]))


class Reaper:
    """The reaper of one agent. One of a sandbox has no leader, but `programs`."""

    control: OrderSocket

    def __init__(self, locks: int = -1, box_tasks: BoxTasks | None = None) -> None:
        self.locks = locks
        self.box_tasks = box_tasks or BoxTasks()
        self.notification_server: NotificationServer | None = (
            None  # answers the agent's system calls
        )
        self.programs: Programs | None = None
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
        self.control = OrderSocket(control)
        line = self.control.read_line()
        if line is None:
            return
        signal.signal(signal.SIGTERM, self._launcher_died)
        signal.signal(signal.SIGUSR1, self._limit_crossed)
        try:
            if Launch.names_program(line):
                pending, launch = deliver_order(pending, line, stdio)
                self._start(pending, launch, stdio)
            else:
                launch = Launch.from_line(line)
                self._open_sandbox(pending, launch, stdio)
            priority = ReaperPriority(launch)
        except StartFailed as error:
            self.control.send({"event": "failed", **error.report})
            return
        self.grace = launch.grace_seconds
        if launch.wall_seconds:
            self.deadline = time.monotonic() + launch.wall_seconds
        self._run_loop(priority)
        tree.kill_children()
        self._report_denials(flush=True)
        self.control.send({"event": "exited", "status": self.status, "cause": self.cause})

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
        self.control.send({"event": "started", **started, "measured": executed.measured})

    def _open_sandbox(
        self, pending: PendingProcess | None, launch: Launch, stdio: tuple[int, int, int]
    ) -> None:
        """Nothing is started: programs are ordered later."""
        for fd in stdio:
            os.close(fd)
        self.notification_server = make_server(launch, self.locks, self.box_tasks)
        self.programs = Programs(
            launch, pending, self.notification_server, self.locks, self.box_tasks
        )
        ids = {"pid": 0, "start_ticks": 0, "reaper": os.getpid()}
        self.control.send({"event": "started", **ids, "measured": {}})

    def _run_loop(self, priority: ReaperPriority) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.signal_fd, select.POLLIN)
        if self.notification_server is not None:
            poll.register(self.notification_server, select.POLLIN)
        if self.programs is not None:
            self.programs.poll = poll
        while not self._is_finished():
            for fd, _ in poll.poll(self._poll_timeout()):
                if fd == self.signal_fd.fileno():
                    self.signal_fd.recv(_SIGNALS)
                    self._reap()
                elif fd == self.control.fileno():
                    self._handle_commands()
                elif self.programs is not None:
                    self.programs.on_readable(fd)
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
            self.control.send({"event": "denied", **asdict(denials)})

    def _is_finished(self) -> bool:
        """The leader has exited and, if the tree is terminating, the grace period is over or no
        process is left.
        """
        if self.status is None:
            return False
        return self.kill_at is None or time.monotonic() >= self.kill_at or not tree.has_children()

    def _poll_timeout(self) -> int | None:
        now = time.monotonic()
        moments = [self.deadline, self.kill_at]
        moments += [] if self.programs is None else [self.programs.next_deadline()]
        timeouts = [moment - now for moment in moments if moment is not None]
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
        if self.programs is not None:
            self.programs.check_deadlines()

    def _handle_commands(self) -> None:
        lines = self.control.receive()
        if lines is None:  # the host has exited
            self._kill()
            return
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
            case "start" if self.programs is not None:
                control, *stdio = self.control.pop_fds()
                self.programs.add(control, (stdio[0], stdio[1], stdio[2]))

    def _terminate(self, grace: float) -> None:
        kill_at = time.monotonic() + grace
        if self.kill_at is None or kill_at < self.kill_at:
            self.kill_at = kill_at
        if self.programs is not None:  # there is no leader to wait for
            self.status = 0
            self.programs.close()
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
        if self.programs is not None:
            self.programs.close()
            return 0
        tree.signal_process(self.leader, signal.SIGKILL)
        return os.waitpid(self.leader, 0)[1]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self.programs is not None:
                    self.programs.on_exit(pid, status)
                elif pid == self.leader and self.status is None:
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

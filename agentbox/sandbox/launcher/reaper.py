"""The parent of one agent: starts it, obeys its host, and leaves only when no process of the tree lives.

A child subreaper: what the agent double-forks or puts into a session of its own still becomes its child. It ends the
tree when the launcher dies (SIGTERM by parent death), when the host dies (its control socket closes), when the
watchdog says so (SIGUSR1) and when the time is over. Runs in a fork of the launcher; single-threaded.
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
from typing import Any, NoReturn

from agentbox.core.linux import kernel
from agentbox.sandbox.launcher import tree, warmup
from agentbox.sandbox.launcher.eager import Eager
from agentbox.sandbox.launcher.newborn import Newborn, NotBorn
from agentbox.sandbox.launcher.signal_fd import wakeup
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.spec import Cause, Launch
from agentbox.sandbox.syscalls.desk import Desk

_LINE = 1 << 16
_FDS = 4  # control, stdin, stdout, stderr


def main(orders: socket.socket, launcher: int, locks: int, box: BoxTasks, *, ahead: bool) -> NoReturn:
    """Never returns: exits 0 once the tree is empty, or when `orders` closes without one. `locks` is a file that all reapers
    share, as `box` is. `ahead`: there is time until the order comes."""
    code = 1
    try:
        kernel.become_subreaper()
        kernel.signal_me_when_parent_dies(signal.SIGTERM)
        keeper = Reaper(locks, box)
        if os.getppid() == launcher:
            _serve_one(orders, keeper, ahead)
        tree.end_children()
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def _serve_one(orders: socket.socket, keeper: "Reaper", ahead: bool) -> None:
    """What may be done before it is known for whom is done before."""
    newborn = None
    with contextlib.suppress(OSError):  # no process left now: tried again, and told, when it is needed
        newborn = Newborn(ahead=ahead)
        if ahead:
            warmup.of_keeper(newborn, keeper.locks)
    data, fds, _, _ = socket.recv_fds(orders, 1, _FDS)
    orders.close()
    if data:
        keeper.run(socket.socket(fileno=fds[0]), newborn, (fds[1], fds[2], fds[3]))


class Reaper:
    """One agent's keeper."""

    control: socket.socket

    def __init__(self, locks: int = -1, box: BoxTasks | None = None) -> None:
        self.locks = locks
        self.box = box or BoxTasks()
        self.desk: Desk | None = None  # where the agent's calls are answered
        self.buffer = bytearray()
        self.leader = 0
        self.status: int | None = None
        self.cause: Cause = ""
        self.deadline: float | None = None  # when the tree is ended
        self.kill_at: float | None = None  # when a tree that was asked to end is killed
        self.grace = 5.0
        self.woken = wakeup()

    def run(self, control: socket.socket, newborn: Newborn | None, stdio: tuple[int, int, int]) -> None:
        """Starts the agent and stays with it to the end. `control`: where its host speaks."""
        self.control = control
        line = self._first_line()
        if line is None:
            return
        signal.signal(signal.SIGTERM, self._launcher_died)
        signal.signal(signal.SIGUSR1, self._limit_crossed)
        try:
            newborn, launch = _told(newborn, line, stdio)
            eager = Eager(launch)
            self._start(newborn, launch, stdio)
        except NotBorn as error:
            self._tell({"event": "failed", **error.word})
            return
        self.grace = launch.grace_seconds
        if launch.wall_seconds:
            self.deadline = time.monotonic() + launch.wall_seconds
        self._watch(eager)
        tree.end_children()
        self._tell_denials(all_of_them=True)
        self._tell({"event": "exited", "status": self.status, "cause": self.cause})

    def _start(self, newborn: Newborn, launch: Launch, stdio: tuple[int, int, int]) -> None:
        self.leader = newborn.pid
        born = newborn.begin(launch, self.locks, self.box)
        for fd in stdio:
            os.close(fd)
        self.desk = born.desk
        row = tree.look(self.leader)
        started = {"pid": self.leader, "start_ticks": row.start_ticks if row else 0, "reaper": os.getpid()}
        self._tell({"event": "started", **started, "measured": born.measured})

    def _watch(self, eager: Eager) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        if self.desk is not None:
            poll.register(self.desk, select.POLLIN)
        while not self._over():
            for fd, _ in poll.poll(self._patience()):
                if fd == self.woken.fileno():
                    self.woken.recv(_LINE)
                    self._reap()
                elif fd == self.control.fileno():
                    self._obey()
            self._serve()
            self._tell_denials()
            self._check_time()
            eager.look()

    def _serve(self) -> None:
        if self.desk is not None:
            self.desk.serve()

    def _tell_denials(self, *, all_of_them: bool = False) -> None:
        for told in self.desk.told(all_of_them=all_of_them) if self.desk is not None else ():
            self._tell({"event": "denied", **asdict(told)})

    def _over(self) -> bool:
        """The leader is gone and, where the tree was asked to end, the grace of the others is used up or unneeded."""
        if self.status is None:
            return False
        return self.kill_at is None or time.monotonic() >= self.kill_at or not tree.has_children()

    def _patience(self) -> int | None:
        now = time.monotonic()
        waits = [moment - now for moment in (self.deadline, self.kill_at) if moment is not None]
        if self.desk is not None and (patience := self.desk.patience()) is not None:
            waits.append(patience)
        return max(0, int(min(waits) * 1000) + 1) if waits else None

    def _check_time(self) -> None:
        now = time.monotonic()
        if self.kill_at is not None and now >= self.kill_at:
            self._kill()
        elif self.deadline is not None and now >= self.deadline:
            self.deadline, self.cause = None, "timeout"
            self._end(self.grace)

    def _obey(self) -> None:
        data = self._receive()
        if not data:  # the host is gone
            self._kill()
            return
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        # The same end ordered again and again is one look at all processes, not one for each.
        for line, following in zip(lines, [*lines[1:], None], strict=True):
            order = json.loads(line)
            if order["do"] != "end" or line != following:
                self._order(order)

    def _order(self, order: Mapping[str, Any]) -> None:
        number = order.get("signal", 0)
        match order["do"]:
            case "signal" if self.status is None:  # once reaped, the number may be another's
                tree.send_one(self.leader, number)
            case "tree" if number == signal.SIGSTOP:
                tree.freeze(os.getpid())
            case "tree":
                tree.send(tree.family(os.getpid()), number)
            case "end":
                self._end(order["grace"])

    def _end(self, grace: float) -> None:
        due = time.monotonic() + grace
        if self.kill_at is None or due < self.kill_at:
            self.kill_at = due
        rows = tree.family(os.getpid())
        tree.send(rows, signal.SIGTERM)
        tree.send(rows, signal.SIGCONT)  # a stopped process gets its TERM too

    def _kill(self) -> None:
        """Ends the leader now; `run` ends the rest. With the leader still counted, its status is the real one."""
        if self.status is None:
            self.status = self._kill_leader()
        self.kill_at = time.monotonic()

    def _kill_leader(self) -> int:
        tree.send_one(self.leader, signal.SIGKILL)
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
        self.kill_at = time.monotonic()  # the wake-up descriptor ends the poll; the loop does the rest

    def _first_line(self) -> bytes | None:
        while b"\n" not in self.buffer:
            data = self._receive()
            if not data:
                return None
            self.buffer += data
        line, end, rest = bytes(self.buffer).partition(b"\n")
        self.buffer = bytearray(rest)
        return line + end

    def _receive(self) -> bytes:
        """What the host says; nothing once it is gone."""
        try:
            return self.control.recv(_LINE)
        except ConnectionResetError:
            return b""

    def _tell(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a dead host needs no word
            self.control.sendall(json.dumps(message).encode() + b"\n")


def _told(waiting: Newborn | None, line: bytes, stdio: tuple[int, int, int]) -> tuple[Newborn, Launch]:
    """The process that becomes what the line says: the one that waits, or a new one. Raises NotBorn."""
    try:
        newborn = waiting or Newborn(ahead=False)
        newborn.tell(line, stdio)
        launch = Launch.from_line(line)
        if newborn.left(launch):
            newborn = Newborn(ahead=False)
            newborn.tell(line, stdio)
    except OSError as error:
        raise NotBorn({"stage": "launcher", "errno": error.errno, "why": "fork"}) from error
    return newborn, launch

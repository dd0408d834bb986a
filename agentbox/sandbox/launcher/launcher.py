"""The single-threaded process that forks one reaper an agent, one ahead. It holds no state that outlives it.

Orders come as datagrams on a Unix socket: the members of `watchdog.Bounds` with four descriptors (control, stdin, stdout,
stderr). What to run goes straight to the reaper, over the control socket. Answers: `{number, clean, peaks}` when a reaper
is gone and nothing of its tree is left, `{number, peaks}` while they grow, `{number, breach}` and `{number, warning}` with
limit, observed and cap. Closing the socket ends everything.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from agentbox.core.linux import kernel
from agentbox.sandbox import confinement
from agentbox.sandbox.launcher import reaper, tree
from agentbox.sandbox.launcher.signal_fd import wakeup
from agentbox.sandbox.launcher.spare import Spare
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.monitor.disk import Disk
from agentbox.sandbox.monitor.watchdog import Bounds, Watchdog
from agentbox.sandbox.seccomp import agent_filter
from agentbox.sandbox.syscalls.listener import names_of

_DATAGRAM = 4096
_FDS = 4
IDLE_SECONDS = 10.0  # without an agent, until the preforked reaper and the disk scanner end


def main(argv: list[str]) -> NoReturn:
    """`argv`: optionally the idle time in seconds instead of `IDLE_SECONDS`, then the number of the inherited socket."""
    *idle, inherited = argv
    commands = socket.socket(fileno=int(inherited))
    commands.set_inheritable(False)
    kernel.become_subreaper()
    kernel.forbid_new_privileges()
    kernel.signal_me_when_parent_dies(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # an architecture without a filter is told at each start
        confinement.prepare()
        names_of(agent_filter.of_this_machine())
    gc.freeze()  # no collection touches, and so copies, the pages that the reapers share
    gc.disable()
    Launcher(commands, float(idle[0]) if idle else IDLE_SECONDS).run()
    sys.exit(0)


class Launcher:
    """The loop: orders, deaths of reapers, and a look at all trees a few times a second."""

    def __init__(self, commands: socket.socket, idle_seconds: float) -> None:
        self.commands, self.idle_seconds = commands, idle_seconds
        self.trees: dict[int, Bounds] = {}  # by pid of the reaper
        self.watchdog = Watchdog()
        self.next_look = 0.0
        self.release_at: float | None = None  # when an idle launcher ends the processes that it keeps ready
        self.children = wakeup()
        self.locks = os.memfd_create("ports", os.MFD_CLOEXEC)  # what reapers lock, byte n for port n
        self.box = BoxTasks()
        self.disk = Disk(self._close)
        self.pid = os.getpid()
        self.spare = Spare(self._be_reaper)

    def run(self) -> None:
        """Returns when the host closed its end; every reaper then ends its tree because its parent dies."""
        poll = select.poll()
        poll.register(self.commands, select.POLLIN)
        poll.register(self.children, select.POLLIN)
        while True:
            if (walker := self.disk.fileno()) >= 0:
                poll.register(walker, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(self._patience())}
            if self.children.fileno() in ready:
                self.children.recv(_DATAGRAM)
                self._bury()
            if self.commands.fileno() in ready and not self._obey():
                return
            self._hear_of_disk()
            self.spare.look()
            self._release_idle()
            if self.trees and time.monotonic() >= self.next_look:
                self._look()

    def _patience(self) -> int | None:
        waits = [self.next_look - time.monotonic()] if self.trees else []
        if (due := self.spare.patience()) is not None:
            waits.append(due)
        if self.release_at is not None:
            waits.append(self.release_at - time.monotonic())
        return max(0, int(min(waits) * 1000) + 1) if waits else None

    def _release_idle(self) -> None:
        """Ends the preforked reaper and the disk scanner after `idle_seconds` without an agent.

        The next agent starts new ones."""
        now = time.monotonic()
        if self.trees or not (self.spare.pid or self.disk.pid):
            self.release_at = None
        elif self.release_at is None:
            self.release_at = now + self.idle_seconds
        elif now >= self.release_at:
            self.spare.close()
            self.disk.stop()

    def _obey(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self.commands, _DATAGRAM, _FDS)
        except ConnectionResetError:  # the host closed it before it had read everything
            return False
        if not data:
            return False
        try:
            pid = self.spare.give(fds)
            if not self.trees:
                self.next_look = time.monotonic() + self.watchdog.pause
            self.trees[pid] = bounds = Bounds(**json.loads(data))
            self.box.claim(pid)
        except BlockingIOError:  # no process left: the host learns it from the control socket, which closes unanswered
            return True
        finally:
            for fd in fds:
                os.close(fd)
        self.disk.watch(pid, bounds)  # may fork: with none of this agent's descriptors open
        return True

    def _be_reaper(self, orders: socket.socket, ahead: bool) -> NoReturn:
        self._close()
        self.disk.close()
        reaper.main(orders, self.pid, self.locks, self.box, ahead=ahead)

    def _close(self) -> None:
        self.commands.close()
        self.children.close()
        self.spare.close()

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.disk.pid:
                    self.disk.died()
                elif pid == self.spare.pid:
                    self.spare.died()
                elif tree_of := self.trees.pop(pid, None):
                    self.disk.forget(pid)
                    self.box.free(pid)
                    if status:  # killed from outside: its tree is ours now
                        tree.end_children(keep={*self.trees, self.disk.pid, self.spare.pid})
                    peaks = self.watchdog.last(pid)
                    self._tell({"number": tree_of.number, "clean": status == 0, "peaks": peaks})

    def _look(self) -> None:
        for pid, kind, what in self.watchdog.look(self.trees):
            self._tell({"number": self.trees[pid].number, kind: asdict(what)})
            if kind == "breach":
                self._end(pid)
        for pid, tasks in self.watchdog.tasks.items():
            self.box.settle(pid, tasks)
        for pid, peaks in self.watchdog.grown():
            self._tell({"number": self.trees[pid].number, "peaks": peaks})
        self.disk.flush()
        self.next_look = time.monotonic() + self.watchdog.pause

    def _hear_of_disk(self) -> None:
        for word in self.disk.words():
            pid, what = word["reaper"], {name: word[name] for name in word if name != "reaper"}
            self._tell({"number": self.trees[pid].number, **what})
            if "breach" in what:
                self._end(pid)

    def _end(self, pid: int) -> None:
        tree.send_one(pid, signal.SIGUSR1)  # first, so that the reaper knows why its leader ends
        # The reaper shares CPUs and nice value with its tree, which may be a fork bomb: the launcher is faster.
        tree.send(tree.freeze(pid), signal.SIGKILL)

    def _tell(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.commands.send(json.dumps(message).encode())

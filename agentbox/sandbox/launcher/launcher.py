"""The single-threaded process that forks one reaper per agent, one of them ahead. It is stateless
across restarts.

Commands are datagrams on a Unix socket: the fields of `watchdog.TreeLimits` with four descriptors
(control, stdin, stdout, stderr). The launch itself goes to the reaper over the control socket.
Replies: `{number, clean, peaks, cpu_seconds}` when a reaper has exited and its tree is gone,
`{number, peaks}` while they grow, `{number, breach}` and `{number, warning}` with limit, observed
and cap. Closing the socket ends everything.
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
from agentbox.sandbox.launcher.prefork_pool import PreforkPool
from agentbox.sandbox.launcher.signal_fd import open_signal_fd
from agentbox.sandbox.monitor.box_tasks import BoxTasks
from agentbox.sandbox.monitor.disk_monitor import DiskMonitor
from agentbox.sandbox.monitor.watchdog import TreeLimits, Watchdog
from agentbox.sandbox.seccomp import installation
from agentbox.sandbox.syscalls.notification_fd import syscall_names

_DATAGRAM = 4096
_FDS = 4
IDLE_SECONDS = 10.0  # without an agent, until the preforked reaper and the disk scanner end


def main(argv: list[str]) -> NoReturn:
    """`argv`: optionally the idle time in seconds instead of `IDLE_SECONDS`, then the number of the
    inherited socket.
    """
    *idle, inherited = argv
    commands = socket.socket(fileno=int(inherited))
    commands.set_inheritable(False)
    kernel.become_subreaper()
    kernel.forbid_new_privileges()
    kernel.set_parent_death_signal(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # each start reports an architecture without a filter
        confinement.prepare()
        syscall_names(installation.current_machine())
    gc.freeze()  # a collection would write to, and so copy, the pages that the reapers share
    gc.disable()
    LauncherLoop(commands, float(idle[0]) if idle else IDLE_SECONDS).run()
    sys.exit(0)


class LauncherLoop:
    """The loop: commands, exits of reapers, and several polls of all trees per second."""

    def __init__(self, commands: socket.socket, idle_seconds: float) -> None:
        self.commands, self.idle_seconds = commands, idle_seconds
        self.trees: dict[int, TreeLimits] = {}  # by pid of the reaper
        self.watchdog = Watchdog()
        self.next_poll_at = 0.0
        self.release_at: float | None = None  # when an idle launcher ends its waiting processes
        self.signal_fd = open_signal_fd()
        self.port_locks = os.memfd_create(
            "ports", os.MFD_CLOEXEC
        )  # file that reapers lock, byte n for port n
        self.box_tasks = BoxTasks()
        self.disk = DiskMonitor(self._close_sockets)
        self.pid = os.getpid()
        self.prefork_pool = PreforkPool(self._run_reaper)

    def run(self) -> None:
        """Returns when the host closes its end; then every reaper ends its tree because its parent
        dies.
        """
        poll = select.poll()
        poll.register(self.commands, select.POLLIN)
        poll.register(self.signal_fd, select.POLLIN)
        polled_fd = -1  # of the disk scanner
        while True:
            if (scanner_fd := self.disk.fileno()) != polled_fd:
                if polled_fd >= 0:  # closed: `poll` would return at once, for ever
                    poll.unregister(polled_fd)
                if scanner_fd >= 0:
                    poll.register(scanner_fd, select.POLLIN)
                polled_fd = scanner_fd
            ready = {fd for fd, _ in poll.poll(self._poll_timeout())}
            if self.signal_fd.fileno() in ready:
                self.signal_fd.recv(_DATAGRAM)
                self._reap_children()
            if self.commands.fileno() in ready and not self._handle_command():
                return
            self._handle_disk_messages()
            self.prefork_pool.poll()
            self._release_idle()
            if self.trees and time.monotonic() >= self.next_poll_at:
                self._poll_trees()

    def _poll_timeout(self) -> int | None:
        timeouts = [self.next_poll_at - time.monotonic()] if self.trees else []
        if (next_poll := self.prefork_pool.next_poll()) is not None:
            timeouts.append(next_poll)
        if self.release_at is not None:
            timeouts.append(self.release_at - time.monotonic())
        return max(0, int(min(timeouts) * 1000) + 1) if timeouts else None

    def _release_idle(self) -> None:
        """Ends the preforked reaper and the disk scanner after `idle_seconds` without an agent.

        The next agent starts new ones.
        """
        now = time.monotonic()
        if self.trees or not (self.prefork_pool.pid or self.disk.pid):
            self.release_at = None
        elif self.release_at is None:
            self.release_at = now + self.idle_seconds
        elif now >= self.release_at:
            self.prefork_pool.close()
            self.disk.stop()

    def _handle_command(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self.commands, _DATAGRAM, _FDS)
        except ConnectionResetError:  # the host closed the socket with unread messages in it
            return False
        if not data:
            return False
        try:
            pid = self.prefork_pool.assign(fds)
            if not self.trees:
                self.next_poll_at = time.monotonic() + self.watchdog.pause
            self.trees[pid] = limits = TreeLimits(**json.loads(data))
            self.box_tasks.claim(pid)
        except (
            BlockingIOError
        ):  # no process left: the host sees its control socket close without a reply
            return True
        finally:
            for fd in fds:
                os.close(fd)
        self.disk.watch(pid, limits)  # may fork, so after this agent's descriptors are closed
        return True

    def _run_reaper(self, orders: socket.socket, preforked: bool) -> NoReturn:
        self._close_sockets()
        self.disk.close()
        reaper.main(orders, self.pid, self.port_locks, self.box_tasks, preforked=preforked)

    def _close_sockets(self) -> None:
        self.commands.close()
        self.signal_fd.close()
        self.prefork_pool.close()

    def _reap_children(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.disk.pid:
                    self.disk.on_exit()
                elif pid == self.prefork_pool.pid:
                    self.prefork_pool.on_exit()
                elif limits := self.trees.pop(pid, None):
                    self.disk.discard(pid)
                    self.box_tasks.free(pid)
                    if status:  # the reaper was killed: its children are ours now
                        tree.kill_children(keep={*self.trees, self.disk.pid, self.prefork_pool.pid})
                    peaks = self.watchdog.final_peaks(pid)
                    cpu = (
                        usage.ru_utime + usage.ru_stime
                    )  # of everything that the reaper waited for
                    ended = {"clean": status == 0, "peaks": peaks, "cpu_seconds": cpu}
                    self._send({"number": limits.number, **ended})

    def _poll_trees(self) -> None:
        for pid, kind, breach in self.watchdog.poll(self.trees):
            self._send({"number": self.trees[pid].number, kind: asdict(breach)})
            if kind == "breach":
                self._end_tree(pid)
        for pid, tasks in self.watchdog.tasks.items():
            self.box_tasks.reconcile(pid, tasks)
        for pid, peaks in self.watchdog.grown_peaks():
            self._send({"number": self.trees[pid].number, "peaks": peaks})
        self.disk.flush()
        self.next_poll_at = time.monotonic() + self.watchdog.pause

    def _handle_disk_messages(self) -> None:
        for message in self.disk.messages():
            pid, details = (
                message["reaper"],
                {name: message[name] for name in message if name != "reaper"},
            )
            self._send({"number": self.trees[pid].number, **details})
            if "breach" in details:
                self._end_tree(pid)

    def _end_tree(self, pid: int) -> None:
        tree.signal_process(
            pid, signal.SIGUSR1
        )  # first, so that the reaper reports the right cause
        # The reaper shares CPUs and nice value with its tree, which may be a fork bomb: the
        # launcher is faster.
        tree.signal_processes(tree.freeze(pid), signal.SIGKILL)

    def _send(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.commands.send(json.dumps(message).encode())

"""A reaper that is forked before its agent is requested: two forks and all agent-independent steps
are no longer part of a start.
"""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

# seconds without an order before the next fork, so that the current start goes first
_FORK_DELAY: Final = 0.01


class PreforkPool:
    """Holds at most one reaper. `run_child` runs in the forked child, given the socket for its
    order and whether the order comes later. An order that finds no reaper waits for a fork, so a
    burst of orders forks one reaper each and no more.
    """

    def __init__(self, run_child: Callable[[socket.socket, bool], NoReturn]) -> None:
        self._run_child = run_child
        self._socket: socket.socket | None = None
        self._fork_at: float | None = time.monotonic()
        self.pid = 0  # 0 if there is none

    def next_poll(self) -> float | None:
        """Seconds until `poll` is due; None if there is nothing to do."""
        return None if self._fork_at is None else max(0.0, self._fork_at - time.monotonic())

    def poll(self) -> None:
        """Forks the next reaper when it is due."""
        if self._fork_at is not None and time.monotonic() >= self._fork_at:
            with contextlib.suppress(BlockingIOError):  # no process left: the next order retries
                self._fork()
            self._fork_at = None

    def assign(self, fds: list[int]) -> int:
        """Sends the descriptors to the waiting reaper or to a new one; returns its pid. Raises
        BlockingIOError if no process is left.
        """
        pid = self._send_fds(fds)
        if not pid:
            self._fork(fds)
            pid = self._send_fds(fds)
        self._fork_at = time.monotonic() + _FORK_DELAY
        return pid

    def on_exit(self) -> None:
        """The waiting reaper has exited without an agent."""
        self.close()
        self._fork_at = time.monotonic() + _FORK_DELAY

    def close(self) -> None:
        """Makes the waiting reaper exit; also for a fork, which must not keep the socket."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self.pid = None, 0

    def _send_fds(self, fds: list[int]) -> int:
        """The pid, 0 if there is no reaper or it has exited."""
        if self._socket is None:
            return 0
        pid = self.pid
        try:
            socket.send_fds(self._socket, [b"x"], fds)
        except OSError:
            pid = 0
        self.close()
        return pid

    def _fork(self, open_fds: Sequence[int] = ()) -> None:
        local, remote = socket.socketpair()
        with remote:
            try:
                self.pid = os.fork()
            except BlockingIOError:
                local.close()
                raise
            if self.pid == 0:
                signal.set_wakeup_fd(-1)
                local.close()
                for fd in open_fds:  # the child gets them over the socket
                    os.close(fd)
                self._run_child(remote, not open_fds)
        self._socket = local

"""A keeper that waits for its agent, forked ahead: two forks and all that is the same for every agent are no part of a start."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

_FORK_DELAY: Final = 0.01  # seconds without an order before the next is made: the start that used the last one goes first


class PreforkPool:
    """One at most. `become`: what a forked child turns into, given the socket on which its order comes, and whether
    there is time until then. An order that finds
    none waits for a fork, so a burst of orders makes one keeper each and no more."""

    def __init__(self, run_child: Callable[[socket.socket, bool], NoReturn]) -> None:
        self._run_child = run_child
        self._socket: socket.socket | None = None
        self._fork_at: float | None = time.monotonic()
        self.pid = 0  # 0 while there is none

    def next_poll(self) -> float | None:
        """Seconds until `look` wants to be called; None while there is nothing to do."""
        return None if self._fork_at is None else max(0.0, self._fork_at - time.monotonic())

    def poll(self) -> None:
        """Makes the next one when it is due."""
        if self._fork_at is not None and time.monotonic() >= self._fork_at:
            with contextlib.suppress(
                BlockingIOError
            ):  # no process left: the next order tries again
                self._fork()
            self._fork_at = None

    def assign(self, fds: list[int]) -> int:
        """To the keeper that waits, or to a new one; its pid. Raises BlockingIOError where no process is left."""
        pid = self._send_fds(fds)
        if not pid:
            self._fork(fds)
            pid = self._send_fds(fds)
        self._fork_at = time.monotonic() + _FORK_DELAY
        return pid

    def on_exit(self) -> None:
        """It is gone, and was no agent's."""
        self.close()
        self._fork_at = time.monotonic() + _FORK_DELAY

    def close(self) -> None:
        """It leaves; also for a fork, which must not hold it."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self.pid = None, 0

    def _send_fds(self, fds: list[int]) -> int:
        """0 when there was none, or none any more."""
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
                for fd in open_fds:  # they come over the socket
                    os.close(fd)
                self._run_child(remote, not open_fds)
        self._socket = local

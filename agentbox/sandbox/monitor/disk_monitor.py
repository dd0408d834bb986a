"""The launcher's side of the disk scanner: starts it with the first tree that has a directory, and
restarts it after it exits.
"""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_scanner
from agentbox.sandbox.monitor.shared_memory import SharedMemoryUsage
from agentbox.sandbox.monitor.watchdog import TreeLimits

_DATAGRAM = 4096
_ROUNDS = 10  # scans for new processes while all are being stopped


class DiskMonitor:
    """`close_inherited` closes what the child must not keep open. Messages that cannot be sent wait
    for the next.
    """

    def __init__(self, close_inherited: Callable[[], None]) -> None:
        self._close_inherited = close_inherited
        self._shared_memory = (
            SharedMemoryUsage()
        )  # before the first agent: existing files belong to no agent
        self._socket: socket.socket | None = None
        self._trees: dict[int, TreeLimits] = {}
        self._unsent: list[bytes] = []
        self._stopped: set[int] = set()  # processes that were running when all were stopped
        self.pid = 0

    def fileno(self) -> int:
        """-1 while no scanner runs."""
        return -1 if self._socket is None else self._socket.fileno()

    def close(self) -> None:
        """For a fork that is not the scanner."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def stop(self) -> None:
        """Stops the disk scanner; call it while no tree is watched. The next `watch` starts
        another.
        """
        self.close()
        self.pid = 0

    def watch(self, reaper: int, limits: TreeLimits) -> None:
        """Starts watching a tree."""
        if not limits.private:
            return
        self._trees[reaper] = limits
        if self._socket is None:
            self._start()
        else:
            self._send({"watch": reaper, "bounds": vars(limits)})

    def discard(self, reaper: int) -> None:
        """Stops watching a tree that has ended."""
        if self._trees.pop(reaper, None):
            self._send({"forget": reaper})

    def on_exit(self) -> None:
        """The scanner has exited: continues all stopped processes and starts another scanner."""
        self.close()
        self._thaw()
        if self._trees:
            self._start()

    def messages(self) -> Iterator[Mapping[str, Any]]:
        """The pending messages of the scanner about trees; stops and continues processes on its
        request.
        """
        while self._socket is not None:
            try:
                data = self._socket.recv(_DATAGRAM)
            except (BlockingIOError, ConnectionResetError):
                return
            if not data:  # it has exited: `on_exit` is called when it is reaped
                self.close()
                return
            message = json.loads(data)
            if "freeze" in message:
                self._freeze() if message["freeze"] else self._thaw()
            elif message["reaper"] in self._trees:
                yield message

    def _start(self) -> None:
        local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with remote:
            try:
                pid = os.fork()
            except BlockingIOError:  # no process left: the next tree retries
                local.close()
                return
            if pid == 0:
                signal.set_wakeup_fd(-1)
                local.close()
                self._close_inherited()
                disk_scanner.main(remote, self._shared_memory)
        local.setblocking(False)
        self.pid, self._socket, self._unsent = pid, local, []
        for reaper, limits in self._trees.items():
            self._send({"watch": reaper, "bounds": vars(limits)})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._unsent.append(json.dumps(message).encode())
        self.flush()

    def flush(self) -> None:
        """Sends the waiting messages."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent and self._socket is not None:
                self._socket.send(self._unsent[0])
                del self._unsent[0]

    def _freeze(self) -> None:
        for _ in range(_ROUNDS):
            rows = [
                row
                for rows_below in tree.descendants_by_root(tree.scan(), self._trees).values()
                for row in rows_below
            ]
            fresh = [
                row for row in rows if row.state not in "ZXTt" and row.pid not in self._stopped
            ]
            if not fresh:
                return
            tree.signal_processes(fresh, signal.SIGSTOP)
            self._stopped |= {row.pid for row in fresh}

    def _thaw(self) -> None:
        """Continues the processes of existing trees that `_freeze` stopped."""
        if not self._stopped:
            return
        rows = [
            row
            for rows_below in tree.descendants_by_root(tree.scan(), self._trees).values()
            for row in rows_below
        ]
        tree.signal_processes([row for row in rows if row.pid in self._stopped], signal.SIGCONT)
        self._stopped.clear()

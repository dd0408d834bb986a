"""A network namespace with loopback alone: whatever listens there is the only way out."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from support.offline import offline

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_libc = ctypes.CDLL(None, use_errno=True)


class ClosedNetwork:
    """Lives as long as its descriptor, or a process in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def run(self, action: Callable[[], T]) -> T:
        """What `action` returns, or raises. Sockets that it opens and processes that it starts are
        in the namespace."""
        done: list[T] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                if _libc.setns(self._descriptor, _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
                done.append(action())
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                failed.append(error)

        thread = threading.Thread(target=work, name="closed network")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return done[0]

    def listener(self, port: int = 0) -> socket.socket:
        """A socket that listens in the namespace; whoever accepts connects from outside of it."""
        return self.run(lambda: socket.create_server(("127.0.0.1", port)))


@contextmanager
def closed_network() -> Iterator[ClosedNetwork]:
    """A new one. Needs root."""
    descriptor = offline(lambda: os.open(_namespace(), os.O_RDONLY | os.O_CLOEXEC))
    try:
        yield ClosedNetwork(descriptor)
    finally:
        os.close(descriptor)


def _namespace() -> Path:
    return Path(f"/proc/self/task/{threading.get_native_id()}/ns/net")

"""A piece of a test without any network: in a thread whose network namespace has only loopback."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1  # linux/sockios.h, net/if.h
_libc = ctypes.CDLL(None, use_errno=True)


def offline(action: Callable[[], T]) -> T:
    """What `action` returns, or raises. Sockets that it opens and processes that it starts have no network."""
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            _leave_network()
            done.append(action())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=work, name="offline")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _leave_network() -> None:
    """unshare(2) of this thread alone; loopback of the new namespace is brought up."""
    if _libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        fcntl.ioctl(link, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def network_reachable() -> bool:
    """Whether this thread's namespace has a route to the outside (TEST-NET-2 of RFC 5737; nothing is sent to it)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.connect(("198.51.100.1", 9))
        except OSError as error:
            return os.strerror(error.errno or 0) != "Network is unreachable"
        return True

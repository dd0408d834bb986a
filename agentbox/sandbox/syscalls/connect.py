"""connect(2): to the gateway, to the ports that the policy grants, and to listeners of the agent's own.

Never answered with "continue": the address in the agent's memory could be another by then. A call that has to wait for
its peer waits here without keeping the reaper from the other calls.
"""

import errno
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentbox.sandbox.syscalls.addresses import Place
from agentbox.sandbox.syscalls.buffers import Buffers
from agentbox.sandbox.syscalls.listen import address_of, v6_alone
from agentbox.sandbox.syscalls.listener import Listener, Notice
from agentbox.sandbox.syscalls.ports import Ports
from agentbox.sandbox.syscalls.sockets import Sockets, connected

LOOK_SECONDS: Final = 0.05  # between two looks whether who waits was interrupted
_LONGEST_SECONDS: Final = 0.2
_TIME: Final = struct.Struct("=qq")  # struct timeval
_AT_ONCE: Final = _TIME.pack(0, 1)
_UNDER_WAY: Final = (errno.EINPROGRESS, errno.EALREADY, errno.EINTR)


@dataclass(frozen=True)
class _Waiting:
    """A thread in a blocking connect. `deadline` is that of the socket's own SO_SNDTIMEO; 0 is none."""

    notice: Notice
    place: Place
    deadline: float


class Connecting:
    """`watch(fd, then)`: calls `then` once the descriptor can be written to, or has failed."""

    def __init__(
        self,
        listener: Listener,
        sockets: Sockets,
        ports: Ports,
        buffers: Buffers,
        watch: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self._listener, self._sockets, self._ports, self._watch = listener, sockets, ports, watch
        self._buffers = buffers
        self._waiting: dict[int, list[_Waiting]] = {}  # by inode
        signal.signal(signal.SIGALRM, rang)

    def connect(self, notice: Notice) -> int | None:
        """0, or None for a call that is answered later. Raises OSError."""
        place = address_of(self._listener, notice, "connect")
        if place is not None:
            self._ports.check_near(place)
        inode, one = self._sockets.find(notice)
        if one is None:
            raise OSError(errno.EISCONN if place else errno.EOPNOTSUPP, "it is connected, or listens")
        if place is None:  # AF_UNSPEC: it has no peer to be parted from
            return 0
        if place.family != one.family:
            raise OSError(errno.EAFNOSUPPORT, "an address of another family")
        found = self._attempt(inode, one, place)
        if found in _UNDER_WAY and one.fileno() >= 0 and os.get_blocking(one.fileno()):
            self._wait(notice, inode, one, place)
            return None
        if found:
            raise OSError(found, errno.errorcode.get(found, ""))
        return 0

    def patience(self) -> float | None:
        """Seconds until `look` wants to be called."""
        return LOOK_SECONDS if self._waiting else None

    def look(self) -> None:
        """Ends the waits of threads that a signal wants, whose time is over, or that are gone."""
        now = time.monotonic()
        for inode, group in list(self._waiting.items()):
            for one in list(group):
                if not self._listener.waits(one.notice):
                    group.remove(one)
                elif _interrupted(one.notice.pid):  # the connection goes on without it, as POSIX has it
                    self._end(group, one, errno.EINTR)
                elif one.deadline and now >= one.deadline:
                    self._end(group, one, errno.EINPROGRESS)
            if not group:
                del self._waiting[inode]

    def _attempt(self, inode: int, one: socket.socket, place: Place) -> int:
        """The errno of one try, and what follows from it for the socket that is kept."""
        self._buffers.connects(inode)
        place = place.on_loopback(v6_alone=v6_alone(one))
        if self._ports.open_to_all(place):
            found = attempt(one, place)
        else:
            with self._ports.held(place.port):
                found = attempt(one, self._ports.aim(place, v6_alone=v6_alone(one)))
        self._buffers.has_connected(inode, one, place.port)
        if connected(one):
            self._sockets.let_go(inode)
        elif found in _UNDER_WAY:
            self._watch(one.fileno(), lambda: self._ready(inode, one))
        return found

    def _wait(self, notice: Notice, inode: int, one: socket.socket, place: Place) -> None:
        seconds, micro = _TIME.unpack(one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.size))
        patience = seconds + micro / 1e6
        deadline = time.monotonic() + patience if patience else 0
        self._waiting.setdefault(inode, []).append(_Waiting(notice, place, deadline))

    def _ready(self, inode: int, one: socket.socket) -> None:
        """What became of a connection that was under way."""
        group = self._waiting.get(inode)
        if not group:
            if connected(one):
                self._sockets.let_go(inode)
            return
        try:
            found = self._attempt(inode, one, group[0].place)
        except OSError as error:
            found = error.errno or errno.ECONNREFUSED
        if found not in _UNDER_WAY:
            first, *others = self._waiting.pop(inode)
            self._listener.answer(first.notice, error=found)
            for other in others:
                self._listener.answer(other.notice, error=found or errno.EISCONN)

    def _end(self, group: list[_Waiting], one: _Waiting, code: int) -> None:
        group.remove(one)
        self._listener.answer(one.notice, error=code)


def attempt(one: socket.socket, place: Place) -> int:
    """connect(2) without the wait of a blocking socket: for this moment its patience is the shortest there is. A thread of
    the agent that sets it anew right now cannot keep this process: the alarm ends the call."""
    own = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.size)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_SECONDS)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _AT_ONCE)
    try:
        return one.connect_ex(place.python())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, own)


def rang(*_: object) -> None:
    """A handler, so that the signal interrupts a call."""


def _interrupted(thread: int) -> bool:
    """Whether a signal that it has a handler for waits to be delivered to it: proc(5), status."""
    found = {}
    try:
        with open(f"/proc/{thread}/status", "rb") as stream:  # noqa: PTH123 - few imports
            for line in stream:
                name, _, value = line.partition(b":")
                if name in (b"SigPnd", b"ShdPnd", b"SigBlk", b"SigCgt"):
                    found[name] = int(value, 16)
    except OSError:
        return False
    return bool((found[b"SigPnd"] | found[b"ShdPnd"]) & ~found[b"SigBlk"] & found[b"SigCgt"])

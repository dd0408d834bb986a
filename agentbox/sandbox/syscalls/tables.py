"""What the kernel says of sockets on loopback: whose listener a connection would meet, and who waits for one.

One question to sock_diag (man 7 sock_diag, linux/inet_diag.h) where it answers, else the tables in /proc/net.
"""

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from agentbox.sandbox.syscalls.addresses import Place

_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST: Final = 1  # NLM_F_REQUEST
_HEADER: Final = struct.Struct("=IHHII")
_ANY_COOKIE: Final = 0xFFFFFFFF
_COOKIE_AT: Final = _HEADER.size + 44  # struct inet_diag_msg
_SO_COOKIE: Final = 57
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_PAIRS: Final = "/proc/net/unix"
_SYN_SENT, _FADING, _LISTEN = b"02", b"06", b"0A"
_ONE: Final = b"0" * 24 + b"01000000"  # ::1 as /proc/net/tcp6 has it; an address of IPv4 ends with its first byte

Ends = tuple[int, int]


def ends(one: int, other: int) -> Ends:
    """The ports of a connection."""
    return (one, other) if one < other else (other, one)


class Tables:
    """One netlink socket, made on first use. `silent`: sock_diag does not answer here."""

    def __init__(self) -> None:
        self._asked: socket.socket | None = None
        self.silent = False

    def listener(self, place: Place) -> int:
        """Who would take a connection to that address, as `names_of` has it; 0 when nobody would."""
        if not self.silent:
            try:
                return self._ask(place)
            except OSError:  # a kernel without it, or a filter around us
                self.silent = True
        return -next((inode for inode, at in _rows(_LISTEN, local=True) if at == place.port), 0)

    def awaited(self, port: int) -> set[int]:
        """The inodes of sockets anywhere in this box that are connecting to that port of loopback and have no answer yet."""
        return {inode for inode, at in _rows(_SYN_SENT, local=False) if at == port}

    @staticmethod
    def taken() -> set[int]:
        """Every port of this box that a socket has as its own, listening, connected or fading; not one that is bound only."""
        return {int(fields[1].rpartition(b":")[2], 16) for fields in _lines()}

    @staticmethod
    def connections() -> Counter[Ends]:
        """How many sockets of this box are one of the two ends: those too that nobody has open and that still hold data."""
        return Counter(
            ends(*(int(address.rpartition(b":")[2], 16) for address in fields[1:3]))
            for fields in _lines()
            if fields[3] not in (_LISTEN, _FADING)
        )

    @staticmethod
    def pairs() -> set[int]:
        """The inodes of all sockets of Unix in this box, those too that are under way in another."""
        with open(_PAIRS, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
            rows = (line.split(None, 7) for line in stream)  # a name may have anything in it, an end of a line too
            return {int(row[6]) for row in rows if len(row) > 6 and row[6].isdigit()}

    def _ask(self, place: Place) -> int:
        if self._asked is None:
            self._asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        raw = place.raw.ljust(16, b"\0")
        ports = struct.pack(">HH", place.port, 0)
        asked = struct.pack("=BBBxI", place.family, socket.IPPROTO_TCP, 0, _ANY_COOKIE)
        body = asked + ports + raw + raw + struct.pack("=III", 0, _ANY_COOKIE, _ANY_COOKIE)
        self._asked.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body)
        reply = self._asked.recv(4096)
        if _HEADER.unpack_from(reply)[1] == _BY_FAMILY:
            return int(struct.unpack_from("=Q", reply, _COOKIE_AT)[0])
        code = -struct.unpack_from("=i", reply, _HEADER.size)[0]
        if code == 2:  # ENOENT
            return 0
        raise OSError(code, os.strerror(code))


def names_of(one: socket.socket) -> tuple[int, int]:
    """What `Tables.listener` may call it: its cookie, which no other socket ever has, and below zero its inode, for a
    kernel that tells no cookies: a number that comes again after 4 thousand million others."""
    cookie = one.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)
    return int.from_bytes(cookie, "little"), -os.fstat(one.fileno()).st_ino


def _rows(state: bytes, *, local: bool) -> list[tuple[int, int]]:
    """(inode, port) of the sockets in that state; the port of their own end or of the other."""
    found = []
    for fields in _lines():
        if fields[3] == state:
            address, _, port = fields[1 if local else 2].partition(b":")
            if local or address.endswith(b"7F") or address == _ONE:
                found.append((int(fields[9]), int(port, 16)))
    return found


def _lines() -> Iterator[list[bytes]]:
    """The fields of each socket: own address second, state fourth, inode tenth."""
    for table in _TABLES:
        with suppress(FileNotFoundError), open(table, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
            next(stream, b"")
            for line in stream:
                fields = line.split(None, 10)
                if len(fields) > 9:
                    yield fields

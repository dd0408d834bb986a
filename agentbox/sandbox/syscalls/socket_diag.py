"""Queries the kernel about sockets on loopback: the listener for a connection, and clients that
wait for one.

One query to sock_diag (man 7 sock_diag, linux/inet_diag.h) if available, else the tables in
/proc/net.
"""

import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from agentbox.sandbox.syscalls.addresses import SocketAddress

_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST: Final = 1  # NLM_F_REQUEST
_HEADER: Final = struct.Struct("=IHHII")
_ANY_COOKIE: Final = 0xFFFFFFFF
_COOKIE_AT: Final = _HEADER.size + 44  # struct inet_diag_msg
_SO_COOKIE: Final = 57
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_PAIRS: Final = "/proc/net/unix"
_SYN_SENT, _TIME_WAIT, _LISTEN = b"02", b"06", b"0A"
_IPV6_LOOPBACK: Final = (
    b"0" * 24 + b"01000000"
)  # ::1 in the form of /proc/net/tcp6; an IPv4 address ends with its first byte

ConnectionEnds = tuple[int, int]


def connection_ends(first: int, second: int) -> ConnectionEnds:
    """The two ports of a connection, in order."""
    return (first, second) if first < second else (second, first)


class SocketDiag:
    """A netlink socket, opened on first use. `is_unavailable`: sock_diag does not answer here."""

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None
        self.is_unavailable = False

    def find_listener(self, address: SocketAddress) -> int:
        """The id, as of `socket_ids`, of the listener for a connection to that address; 0 if there
        is none.
        """
        if not self.is_unavailable:
            try:
                return self._query(address)
            except OSError:  # not supported by the kernel, or refused by an outer filter
                self.is_unavailable = True
        return -next(
            (
                inode
                for inode, local_port in _sockets_in_state(_LISTEN, local=True)
                if local_port == address.port
            ),
            0,
        )

    def find_connecting(self, port: int) -> set[int]:
        """The inodes of all sockets of this box that are connecting to that loopback port without
        an answer yet.
        """
        return {
            inode
            for inode, remote_port in _sockets_in_state(_SYN_SENT, local=False)
            if remote_port == port
        }

    @staticmethod
    def used_ports() -> set[int]:
        """Every local port of a socket of this box that listens, is connected or in TIME_WAIT; not
        one that is only bound.
        """
        return {int(fields[1].rpartition(b":")[2], 16) for fields in _table_rows()}

    @staticmethod
    def count_connections() -> Counter[ConnectionEnds]:
        """The number of sockets of this box per connection, including closed ones that still hold
        data.
        """
        return Counter(
            connection_ends(*(int(address.rpartition(b":")[2], 16) for address in fields[1:3]))
            for fields in _table_rows()
            if fields[3] not in (_LISTEN, _TIME_WAIT)
        )

    @staticmethod
    def unix_inodes() -> set[int]:
        """The inodes of all Unix sockets of this box, including those in flight."""
        with open(_PAIRS, "rb", buffering=1 << 20) as stream:  # noqa: PTH123 - few imports
            rows = (
                line.split(None, 7) for line in stream
            )  # a name may contain any byte, newlines included
            return {int(row[6]) for row in rows if len(row) > 6 and row[6].isdigit()}

    def _query(self, address: SocketAddress) -> int:
        if self._netlink is None:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        raw = address.raw.ljust(16, b"\0")
        ports = struct.pack(">HH", address.port, 0)
        prefix = struct.pack("=BBBxI", address.family, socket.IPPROTO_TCP, 0, _ANY_COOKIE)
        body = prefix + ports + raw + raw + struct.pack("=III", 0, _ANY_COOKIE, _ANY_COOKIE)
        self._netlink.send(
            _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body
        )
        reply = self._netlink.recv(4096)
        if _HEADER.unpack_from(reply)[1] == _BY_FAMILY:
            return int(struct.unpack_from("=Q", reply, _COOKIE_AT)[0])
        code = -struct.unpack_from("=i", reply, _HEADER.size)[0]
        if code == 2:  # ENOENT
            return 0
        raise OSError(code, os.strerror(code))


def socket_ids(sock: socket.socket) -> tuple[int, int]:
    """The ids that `SocketDiag.find_listener` may return: the cookie, which is unique, and the
    negative inode, for a kernel without cookies; inodes repeat after 4 thousand million others.
    """
    cookie = sock.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)
    return int.from_bytes(cookie, "little"), -os.fstat(sock.fileno()).st_ino


def _sockets_in_state(state: bytes, *, local: bool) -> list[tuple[int, int]]:
    """(inode, port) of the sockets in that state; the local or the remote port."""
    rows = []
    for fields in _table_rows():
        if fields[3] == state:
            address, _, port = fields[1 if local else 2].partition(b":")
            if local or address.endswith(b"7F") or address == _IPV6_LOOPBACK:
                rows.append((int(fields[9]), int(port, 16)))
    return rows


def _table_rows() -> Iterator[list[bytes]]:
    """The fields of each socket: the local address is the second, state fourth, inode tenth."""
    for table in _TABLES:
        with (
            suppress(FileNotFoundError),
            open(table, "rb", buffering=1 << 20) as stream,  # noqa: PTH123 - few imports
        ):
            next(stream, b"")
            for line in stream:
                fields = line.split(None, 10)
                if len(fields) > 9:
                    yield fields

"""Parses socket addresses in an agent's memory. Layouts: linux/in.h, linux/in6.h."""

import errno
import socket
import struct
from dataclasses import dataclass
from typing import Final, Self

_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
_IPV6_LOOPBACK: Final = bytes(15) + b"\x01"
_MIN_LENGTH: Final = {socket.AF_INET: 16, socket.AF_INET6: 24}
MAX_LENGTH: Final = 128  # sizeof(struct sockaddr_storage)


@dataclass(frozen=True)
class SocketAddress:
    """An address and port of TCP; `raw` has 4 or 16 bytes, depending on the family."""

    family: int
    raw: bytes
    port: int
    scope: int = 0

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """None for AF_UNSPEC. Raises OSError: EINVAL if it is too short, EAFNOSUPPORT for another
        family.
        """
        if len(data) < 2:
            raise OSError(errno.EINVAL, "address without a family")
        family = int.from_bytes(data[:2], "little")
        if family == socket.AF_UNSPEC:
            return None
        if family not in _MIN_LENGTH:
            raise OSError(errno.EAFNOSUPPORT, f"address family {family}")
        if len(data) < _MIN_LENGTH[socket.AddressFamily(family)]:
            raise OSError(errno.EINVAL, "address too short")
        port = int.from_bytes(data[2:4], "big")
        if family == socket.AF_INET:
            return cls(family, data[4:8], port)
        return cls(
            family, data[8:24], port, struct.unpack("=I", data[24:28])[0] if len(data) >= 28 else 0
        )

    @property
    def ipv4(self) -> bytes | None:
        """The IPv4 address, also from an IPv4-mapped one."""
        if self.family == socket.AF_INET:
            return self.raw
        return self.raw[12:] if self.raw.startswith(_MAPPED_PREFIX) else None

    @property
    def is_loopback(self) -> bool:
        return self.raw == _IPV6_LOOPBACK if self.ipv4 is None else self.ipv4[0] == 127

    @property
    def is_wildcard(self) -> bool:
        """0.0.0.0, `::`, and the IPv4-mapped 0.0.0.0."""
        return not any(self.raw) or self.ipv4 == bytes(4)

    def on_loopback(self, *, ipv6_only: bool) -> "SocketAddress":
        """The loopback address for a wildcard, else itself. `ipv6_only`: the socket
        takes no IPv4.
        """
        if not self.is_wildcard:
            return self
        if self.family == socket.AF_INET:
            return SocketAddress(self.family, bytes((127, 0, 0, 1)), self.port)
        return (
            SocketAddress(self.family, _IPV6_LOOPBACK, self.port)
            if ipv6_only
            else self.mapped_loopback()
        )

    def mapped_loopback(self) -> "SocketAddress":
        """127.0.0.1 as an IPv4-mapped address."""
        return SocketAddress(socket.AF_INET6, _MAPPED_PREFIX + bytes((127, 0, 0, 1)), self.port)

    def to_python(self) -> tuple[str, int] | tuple[str, int, int, int]:
        """In the form of the socket module."""
        text = socket.inet_ntop(self.family, self.raw)
        return (
            (text, self.port) if self.family == socket.AF_INET else (text, self.port, 0, self.scope)
        )

    def __str__(self) -> str:
        text = socket.inet_ntop(self.family, self.raw)
        return f"{text}:{self.port}" if self.family == socket.AF_INET else f"[{text}]:{self.port}"

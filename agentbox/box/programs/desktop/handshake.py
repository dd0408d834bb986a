"""Checks the authentication types of a VNC server (RFC 6143, 7.1; VeNCrypt in the community's RFB
specification).
"""

import secrets
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from agentbox.core.errors import AgentboxError

_VERSION = b"RFB 003.008\n"
_NONE, _VENCRYPT = 1, 19
_OPEN_SUBTYPES = {1, 257, 260}  # None; None within TLS; None within TLS with a certificate
_TIMEOUT_SECONDS = 3.0


def check(port: str) -> None:
    """Prints the types that the server of this box offers. Exits with 1 and a sentence when a
    viewer could connect without a password, or when the server does not speak VNC.
    """
    try:
        offered = security_types(int(port))
        if _NONE in offered or offered.get(_VENCRYPT, set()) & _OPEN_SUBTYPES:
            raise AgentboxError(
                "the desktop accepts a viewer without a password: "
                f"the server offers {sorted(offered)}"
            )
        if accepts_passwordless(int(port)):
            raise AgentboxError(
                "the desktop accepts a viewer of type None, though it is not offered"
            )
    except (OSError, EOFError) as error:
        raise AgentboxError(f"the server does not speak VNC: {error}") from error
    sys.stdout.write(f"password asked: types {' '.join(str(kind) for kind in sorted(offered))}\n")


def security_types(port: int) -> dict[int, set[int]]:
    """The types that the server offers, with the sub-types of VeNCrypt. Raises OSError,
    EOFError.
    """
    with _connect(port) as (connection, offered):
        types: dict[int, set[int]] = {kind: set() for kind in offered}
        if _VENCRYPT in types:
            connection.sendall(bytes([_VENCRYPT]))
            _read(connection, 2)  # its version
            connection.sendall(bytes([0, 2]))
            if _read(connection, 1) != b"\0":
                raise EOFError("it rejects version 0.2 of VeNCrypt")
            types[_VENCRYPT] = set(
                struct.unpack(
                    f">{(count := _read(connection, 1)[0])}I", _read(connection, 4 * count)
                )
            )
        return types


def accepts_passwordless(port: int) -> bool:
    """Whether the server accepts a viewer that selects type None, offered or not. Raises OSError,
    EOFError.
    """
    with _connect(port) as (connection, _):
        connection.sendall(bytes([_NONE]))
        try:
            return _read(connection, 4) == bytes(4)
        except (ConnectionError, EOFError):
            return False


@contextmanager
def _connect(port: int) -> Iterator[tuple[socket.socket, tuple[int, ...]]]:
    """A connection after the greeting, with the offered types.

    It uses a random loopback address: TigerVNC counts connections without a login per address, and
    would block an address that is used for each probe.
    """
    source = (
        f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    )
    with socket.create_connection(
        ("127.0.0.1", port), _TIMEOUT_SECONDS, source_address=(source, 0)
    ) as connection:
        greeting = _read(connection, len(_VERSION))
        if not greeting.startswith(b"RFB 003."):
            raise EOFError(f"its greeting is {greeting!r}")
        connection.sendall(_VERSION)
        offered = tuple(_read(connection, _read(connection, 1)[0]))
        if not offered:
            raise EOFError(
                "it rejects every connection: "
                f"{_read(connection, struct.unpack('>I', _read(connection, 4))[0])!r}"
            )
        yield connection, offered


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError(f"it closed the connection after {len(data)} of {size} bytes")
        data += more
    return data

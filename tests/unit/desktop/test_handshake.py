"""A VNC server that accepts a viewer without a password is detected, whatever it claims to offer."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from agentbox.box.programs.desktop import handshake
from agentbox.core.errors import AgentboxError

Serve = Callable[..., int]


def _answer(link: socket.socket, types: bytes, subtypes: tuple[int, ...], lets_in: bool) -> None:
    link.sendall(b"RFB 003.008\n")
    link.recv(12)
    if not types:
        link.sendall(b"\0" + struct.pack(">I", 8) + b"too many")
        return
    link.sendall(bytes([len(types)]) + types)
    chosen = link.recv(1)
    if chosen == bytes([19]) and subtypes:
        link.sendall(bytes([0, 2]))
        link.recv(2)
        link.sendall(b"\0" + bytes([len(subtypes)]) + struct.pack(f">{len(subtypes)}I", *subtypes))
    elif chosen == b"\1" and lets_in:
        link.sendall(bytes(4))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(types, subtypes, lets_in=…)` -> the port of a server on loopback that answers so until the test ends."""
    listening = socket.create_server(("127.0.0.1", 0))

    def run(types: bytes, subtypes: tuple[int, ...], lets_in: bool) -> None:
        while True:
            try:
                link, _ = listening.accept()
            except OSError:
                return
            with link:
                try:
                    _answer(link, types, subtypes, lets_in)
                except ConnectionError:
                    continue

    def start(types: bytes, subtypes: tuple[int, ...] = (), *, lets_in: bool = False) -> int:
        threading.Thread(target=run, args=(types, subtypes, lets_in), daemon=True).start()
        return int(listening.getsockname()[1])

    yield start
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def test_a_server_that_asks_is_said_to_ask(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """Password types pass, inside and outside of TLS."""
    handshake.check(str(serve(bytes([2, 19]), (258, 262))))
    assert capsys.readouterr().out == "password asked: types 2 19\n"


@pytest.mark.parametrize(
    ("types", "subtypes", "lets_in", "said"),
    [
        (b"\1\2", (), False, "the desktop accepts a viewer without a password"),
        (b"\2\x13", (258, 257), False, "the desktop accepts a viewer without a password"),
        (b"\x13", (260,), False, "the desktop accepts a viewer without a password"),
        (b"\2", (), True, "the desktop accepts a viewer of type None"),
        (b"", (), False, "it rejects every connection: b'too many'"),
    ],
)
def test_an_open_server_fails(
    serve: Serve, types: bytes, subtypes: tuple[int, ...], lets_in: bool, said: str
) -> None:
    """Type None, None within TLS, None that is not even offered, and a server that does not answer."""
    with pytest.raises(AgentboxError, match=said):
        handshake.check(str(serve(types, subtypes, lets_in=lets_in)))


def test_no_server_fails() -> None:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(AgentboxError, match="does not speak VNC"):
        handshake.check(str(port))

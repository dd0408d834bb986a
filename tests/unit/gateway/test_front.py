"""Which first lines are for the proxy, and which for an application."""

import asyncio
import socket

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.gateway.connections.protocol_sniffer import ProtocolSniffer, detect_protocol


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"CONNECT example.com:443 HTTP/1.1\r\n", "proxy"),
        (b"GET http://example.com/ HTTP/1.1\r\n", "proxy"),
        (b"GET ftp://example.com/ HTTP/1.1\r\n", "proxy"),
        (b"\r\nGET h", "proxy"),
        (b"POST /rpc HTTP/1.1\r\n", "http"),
        (b"OPTIONS * HTTP/1.1\r\n", "http"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http"),
        (b"\x16\x03\x01" + b"\x00" * 40, "http"),
        (b"nonsense\n", "http"),
        (b"", None),
        (b"GET", None),
        (b"GET ", None),
        (b"\r\n\r\n", None),
    ],
)
def test_the_first_line_decides(data: bytes, kind: str | None) -> None:
    """By the form of the target; nothing is decided before it begins."""
    assert detect_protocol(data) == kind


def test_empty_lines_before_a_request_are_not_kept() -> None:
    """However many arrive, and though no line follows them."""

    async def flood() -> None:
        near, far = socket.socketpair()
        loop, fronts = asyncio.get_running_loop(), list[ProtocolSniffer]()

        def make() -> ProtocolSniffer:
            fronts.append(ProtocolSniffer(asyncio.Protocol, asyncio.Protocol, {}))
            return fronts[0]

        transport, _ = await loop.connect_accepted_socket(make, near)
        far.setblocking(False)
        for _ in range(64):
            await loop.sock_sendall(far, b"\r\n" * 32_768)
        await loop.sock_sendall(far, b"GET")
        await wait_until(lambda: fronts[0]._buffer.endswith(b"GET"), "all was read")
        assert fronts[0]._buffer == b"GET"
        transport.abort()
        far.close()

    asyncio.run(flood())


def test_every_cut_of_a_line_decides_alike() -> None:
    """However the bytes are split, a prefix and a longer one never lead to different decisions."""
    for line, kind in ((b"CONNECT a:1 HTTP/1.1\r\n", "proxy"), (b"POST /rpc HTTP/1.1\r\n", "http")):
        assert {detect_protocol(line[:length]) for length in range(len(line) + 1)} == {None, kind}

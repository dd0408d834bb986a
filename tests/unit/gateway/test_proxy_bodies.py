"""Bodies through the proxy: their pace, and answers without one."""

import asyncio

from support.gateway_fixture import GatewayFixture, serve_tcp
from support.proxy_requests import AUTH, OK, answering


async def test_a_large_body_passes_both_ways_at_the_pace_of_the_slower(
    gateway: GatewayFixture,
) -> None:
    """32 MiB up and down, byte for byte, and a client that waits for 100 Continue gets it."""
    size = 32 << 20

    async def back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)  # its end is the connection's
        await writer.drain()

    async with serve_tcp(back) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(
            f"PUT http://127.0.0.1:{port}/ HTTP/1.0\r\n{AUTH}Content-Length: {size}\r\n\r\n".encode()
        )
        writer.write(bytes(range(256)) * (size >> 8))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert await reader.read() == bytes(range(256)) * (size >> 8)
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen, 2)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(
            f"PUT http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b"ok")
        assert (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200 ")
    assert seen[0].endswith(b"\r\n\r\nok")
    assert b"Expect" not in seen[0]


async def test_head_and_304_have_no_body(gateway: GatewayFixture) -> None:
    """The announced length stays, and the next response on the connection is the next response."""
    for method, response in (
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
    ):
        async with (
            serve_tcp(answering(response, [])) as port,
            serve_tcp(answering(OK, [])) as other,
        ):
            output = await gateway.send_raw(
                f"{method} http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n"
                f"GET http://127.0.0.1:{other}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n".encode()
            )
        assert output.split(b"\r\n\r\n")[-1] == b"hi"
        assert output.count(b"HTTP/1.1 ") == 2

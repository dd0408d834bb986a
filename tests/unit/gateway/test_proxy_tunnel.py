"""Tunnels through a real gateway to real sockets."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from support.fake_authorizer import right
from support.gateway_fixture import TOKEN, GatewayFixture, serve_tcp

from agentbox.box.supervision.applied_plan import store_applied
from agentbox.policy.rights.authorization import Ancestor

Start = Callable[..., Awaitable[GatewayFixture]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns all it receives, and ends after the client's end."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def gone(reader: asyncio.StreamReader) -> bool:
    """Waits for the end; False if any byte precedes it."""
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


async def test_bytes_pass_both_ways_and_a_half_close_stays_half(gateway: GatewayFixture) -> None:
    """The client ends its direction; what the server sends afterwards still arrives."""

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = await reader.read()
        await asyncio.sleep(0.1)
        writer.write(b"after your end: " + said)

    async with serve_tcp(late) as port:
        reader, writer, line = await gateway.open_tunnel(f"127.0.0.1:{port}")
        assert line == "HTTP/1.1 200 Connection established"
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"after your end: hello"


async def test_what_comes_with_the_head_is_not_lost(gateway: GatewayFixture) -> None:
    """A client that does not wait for the 200."""
    async with serve_tcp(echo) as port:
        head = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic YWdlbnQ6YS10b2tlbi1vZi1hbi1hZ2VudA==\r\n\r\n"
        assert (await gateway.send_raw(head.encode() + b"early")).endswith(b"\r\n\r\nearly")


async def test_without_a_token_nothing_is_looked_up(gateway: GatewayFixture) -> None:
    """407 with a challenge; an unknown token, another name and another scheme are no better."""
    for header in ("", "Proxy-Authorization: Bearer wrong\r\n", "Proxy-Authorization: Basic b3RoZXI6YS10b2tlbi1vZi1hbi1hZ2VudA==\r\n",
                   "Proxy-Authorization: Digest x\r\n", "Authorization: Bearer a-token-of-an-agent\r\n"):  # fmt: skip
        output = await gateway.send_raw(
            f"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode()
        )
        assert output.startswith(b"HTTP/1.1 407 ")
        assert b'Proxy-Authenticate: Basic realm="agentbox"' in output
    assert gateway.resolver.queries == []


async def test_a_target_outside_of_the_rights_is_403_and_counted(gateway: GatewayFixture) -> None:
    """The rule and a remedy are named; the name is not resolved."""
    gateway.authorizer.set_rights("one", [right("net", "connect", "*.example.com:443")])
    _, _, line = await gateway.open_tunnel("example.org:443")
    assert line == "HTTP/1.1 403 Forbidden"
    assert gateway.authorizer.refusals == [("one", "proxy", "net connect")]
    assert gateway.resolver.queries == []


@pytest.mark.parametrize(
    ("answers", "rule"),
    [
        (["127.0.0.1"], "address:loopback"),
        (["::ffff:127.0.0.1"], "address:loopback"),
        (["169.254.169.254"], "address:link-local"),
        (["64:ff9b::a9fe:a9fe"], "address:link-local"),
        (["2002:7f00:1::"], "address:transition"),
        (["10.0.0.1"], "address:private"),
        (["93.184.216.34", "10.0.0.1"], "address:private"),
        (["0.0.0.0"], "address:unspecified"),
    ],
)
async def test_a_name_that_leads_inside(start: Start, answers: list[str], rule: str) -> None:
    """However the address is spelled, and also where only one of several is inside."""
    gateway = await start(allow_private=[])
    gateway.resolver.answers["evil.example"] = [answers]
    _, _, line = await gateway.open_tunnel("evil.example:443")
    assert line == "HTTP/1.1 403 Forbidden"
    assert gateway.denied_rules == [rule]


async def test_a_rebinding_name_is_looked_up_once(start: Start) -> None:
    """The first answer is exempt and connected to; the second, metadata, would never be requested.
    When it is, it is refused."""
    async with serve_tcp(echo) as port:
        gateway = await start(allow_private=[f"127.0.0.1:{port}"])
        gateway.resolver.answers["rebinds.example"] = [["127.0.0.1"], ["169.254.169.254"]]
        reader, writer, line = await gateway.open_tunnel(f"rebinds.example:{port}")
        assert (line[9:12], gateway.resolver.queries) == ("200", ["rebinds.example"])
        writer.write(b"x")
        assert await reader.read(1) == b"x"
        _, _, line = await gateway.open_tunnel(f"rebinds.example:{port}")
        assert (line[9:12], gateway.denied_rules) == ("403", ["address:link-local"])


@pytest.mark.timed
async def test_a_right_that_is_taken_back_cuts_the_open_tunnel_at_once(
    gateway: GatewayFixture,
) -> None:
    """Within 100 ms, while the other right's tunnel stays; an agent that ends loses all."""
    async with serve_tcp(echo) as stored, serve_tcp(echo) as lost:
        both = [right("net", "connect", f"127.0.0.1:{port}") for port in (stored, lost)]
        gateway.authorizer.set_rights("one", both)
        stays, goes = (
            await gateway.open_tunnel(f"127.0.0.1:{stored}"),
            await gateway.open_tunnel(f"127.0.0.1:{lost}"),
        )
        began = time.monotonic()
        gateway.authorizer.set_rights("one", both[:1])
        assert await gone(goes[0])
        assert time.monotonic() - began < 0.1
        stays[1].write(b"x")
        assert await stays[0].readexactly(1) == b"x"
        assert gateway.denied_rules == ["net connect"]
        gateway.authorizer.remove("one")
        assert await gone(stays[0])


async def test_connections_of_an_agent_are_counted(start: Start) -> None:
    """One more than egress.max_connections is 429; another agent has its own; a closed one frees
    its place."""
    async with serve_tcp(echo) as port:
        gateway = await start(max_connections=2)
        gateway.authorizer.add("two", "another", [right("net", "connect", "*:*")])
        first, _ = (
            await gateway.open_tunnel(f"127.0.0.1:{port}"),
            await gateway.open_tunnel(f"127.0.0.1:{port}"),
        )
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "429"
        assert gateway.denied_rules == ["limit:connections"]
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}", "another"))[2][9:12] == "200"
        first[1].close()
        async with asyncio.timeout(5):
            while (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] != "200":
                await asyncio.sleep(0.01)


async def _many(
    move: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    for _ in range(100):
        await move(reader, writer)


async def _there_and_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(50_000))
    await writer.drain()
    await reader.readexactly(50_000)


@pytest.mark.limit("egress")
async def test_bytes_are_counted_across_a_restart_and_the_limit_cuts(start: Start) -> None:
    """A million in 24 hours: the tunnel is cut when they are used, and the next is refused, by
    another process too; another agent's tunnel transfers all the while."""
    async with serve_tcp(echo) as port:
        gateway = await start({"egress": 1_000_000})
        gateway.authorizer.add("two", "another", [right("net", "connect", "*:*")])
        beside_reader, beside_writer, _ = await gateway.open_tunnel(f"127.0.0.1:{port}", "another")
        reader, writer, _ = await gateway.open_tunnel(f"127.0.0.1:{port}")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await _many(_there_and_back, reader, writer)
        assert gateway.denied_rules == ["limit:egress"]
        await _there_and_back(beside_reader, beside_writer)
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "429"
        await gateway.server.close()
        again = GatewayFixture.__new__(GatewayFixture)
        again.__dict__.update(gateway.__dict__)
        again.server = type(gateway.server)(gateway.config, gateway.authorizer, gateway.resolver)
        await again.server.open()
        try:
            assert (await again.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "429"
        finally:
            await again.server.close()


async def test_a_family_moves_no_more_bytes_than_its_head_may(start: Start) -> None:
    """A new child finds what those before it have moved, and its parent does too; another family does not."""
    async with serve_tcp(echo) as port:
        gateway = await start({"egress": 1_000_000})
        rights = [right("net", "connect", "*:*")]
        line = (Ancestor(agent_id="one", name="one", budget=None, rights=tuple(rights)),)
        for name, more in (
            ("first", {"ancestors": line}),
            ("second", {"ancestors": line}),
            ("stranger", {}),
        ):
            gateway.authorizer.add(name, f"of {name}", rights, **more)
        reader, writer, _ = await gateway.open_tunnel(f"127.0.0.1:{port}", "of first")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await _many(_there_and_back, reader, writer)
        for token, status in (("of second", "429"), (TOKEN, "429"), ("of stranger", "200")):
            assert (await gateway.open_tunnel(f"127.0.0.1:{port}", token))[2][9:12] == status


async def test_what_is_applied_holds_for_the_next_connection(start: Start) -> None:
    """egress.allow_private is revoked while the gateway runs; an unreadable plan changes nothing."""
    async with serve_tcp(echo) as port:
        gateway = await start()
        applied = gateway.config.paths.applied_plan
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "200"
        applied.parent.mkdir(parents=True, exist_ok=True)
        applied.write_text("{")
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "200"
        store_applied(
            gateway.config.paths,
            replace(
                gateway.config.plan, reach=replace(gateway.config.plan.reach, allow_private=())
            ),
        )
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "403"


async def test_two_hundred_tunnels_at_once(start: Start) -> None:
    """Each has its own bytes."""
    gateway = await start(max_connections=200)

    async def one(number: int, port: int) -> bool:
        reader, writer, line = await gateway.open_tunnel(f"127.0.0.1:{port}")
        said = number.to_bytes(2, "big") * 20_000
        writer.write(said)
        writer.write_eof()
        found = line[9:12] == "200" and await reader.read() == said
        writer.close()
        return found

    async with serve_tcp(echo) as port, asyncio.timeout(30):
        assert all(await asyncio.gather(*(one(number, port) for number in range(200))))


async def test_a_target_that_does_not_answer_is_504(start: Start) -> None:
    """A listener whose queue is full; and a name server that does not answer."""
    gateway = await start(connect_timeout_seconds=1)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][9:12] == "504"
        for filler in fillers:
            filler.close()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert (await gateway.open_tunnel(f"127.0.0.1:{nobody.getsockname()[1]}"))[2][9:12] == "502"
    assert (await gateway.open_tunnel("nowhere.example:443"))[2][9:12] == "502"
    assert gateway.denied_rules == []


async def test_a_host_that_waits_for_approval_is_refused(gateway: GatewayFixture) -> None:
    """No approval was given: rights alone are not sufficient."""
    gateway.authorizer.add(
        "asks",
        "asking",
        [right("net", "connect", "*:*")],
        approval_required=("host:*.example.com",),
    )
    assert (await gateway.open_tunnel("a.example.com:443", "asking"))[2][9:12] == "403"
    assert gateway.denied_rules == ["approval host"]


async def test_the_tunnel_ends_when_nobody_says_anything() -> None:
    """By the clock of the tunnel alone."""
    from agentbox.gateway.proxy.stream import ProxyStream
    from agentbox.gateway.proxy.tunnel import tunnel

    loop, pairs = asyncio.get_running_loop(), [socket.socketpair() for _ in range(2)]
    streams = [(await loop.create_connection(ProxyStream, sock=ours))[1] for ours, _ in pairs]
    with pytest.raises(TimeoutError):
        await tunnel(streams[0], streams[1], lambda _count: None, idle_seconds=0.05)
    for stream, (_, theirs) in zip(streams, pairs, strict=True):
        stream.abort()
        theirs.close()

"""The forward proxy behind the proxy of an operator's network: by name, checked here first."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from support.gateway_fixture import GatewayFixture, serve_tcp

from agentbox.core.paths import Paths
from agentbox.policy.outgoing import Outgoing

Start = Callable[..., Awaitable[GatewayFixture]]
PUBLIC = "198.41.0.4"  # never connected to: the proxy of the test answers
ACCOUNT = "jane:pa55:with colon"


class Upstream:
    """The operator's proxy: it answers each CONNECT with the same bytes, then echoes."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.heads, self.port = answer, list[str](), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self.answer)
        while data := await reader.read(1 << 16):
            writer.write(data)


@asynccontextmanager
async def upstream(
    root: Path, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n", **outgoing: object
) -> AsyncIterator[Upstream]:
    """Runs one, and tells the box of it as the boot does."""
    proxy = Upstream(answer)
    async with serve_tcp(proxy.serve) as proxy.port:
        tell(root, proxy=f"http://127.0.0.1:{proxy.port}", **outgoing)
        yield proxy


def tell(root: Path, **outgoing: object) -> None:
    file = Paths(root).outgoing
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(asdict(Outgoing(**outgoing))))  # type: ignore[arg-type]


async def refusal(gateway: GatewayFixture, target: str) -> str:
    """The response to a CONNECT, whole."""
    head = f"CONNECT {target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer a-token-of-an-agent\r\n\r\n"
    return (await gateway.send_raw(head.encode())).decode()


async def test_a_tunnel_is_asked_for_by_name(start: Start, tmp_path: Path) -> None:
    """With user and password of the box, not the agent's token; what comes with the answer is not
    lost."""
    answer = b"HTTP/1.1 200 OK\r\nVia: corp\r\n\r\nserver first;"
    async with upstream(tmp_path / "box", answer, account=ACCOUNT) as proxy:
        gateway = await start()
        gateway.resolver.answers["files.example"] = [[PUBLIC]]
        reader, writer, line = await gateway.open_tunnel("files.example:8443")
        assert line == "HTTP/1.1 200 Connection established"
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"server first;hello"
        target = "files.example:8443"
        account = base64.b64encode(ACCOUNT.encode()).decode()
        assert proxy.heads == [
            f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {account}\r\n\r\n"
        ]


@pytest.mark.parametrize("address", ["10.0.0.7", "169.254.169.254", "127.0.0.1", "fd00::1"])
async def test_a_name_that_leads_inside_is_refused_here(
    start: Start, tmp_path: Path, address: str
) -> None:
    """The proxy is not asked: it may reach what the box must not."""
    async with upstream(tmp_path / "box") as proxy:
        gateway = await start(allow_private=())
        gateway.resolver.answers["inside.example"] = [[PUBLIC, address]]
        assert "Agentbox-Rule: address:" in await refusal(gateway, "inside.example:443")
        assert proxy.heads == []


async def test_what_no_proxy_names_is_reached_directly(start: Start, tmp_path: Path) -> None:
    """By its checked address, also where the proxy looks up the other names."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1 << 16))

    async with (
        serve_tcp(echo) as port,
        upstream(tmp_path / "box", no_proxy=("*.corp.example",), resolve="proxy") as proxy,
    ):
        gateway = await start()
        gateway.resolver.answers["git.corp.example"] = [["127.0.0.1"]]
        reader, writer, line = await gateway.open_tunnel(f"git.corp.example:{port}")
        assert line.endswith("established")
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        assert proxy.heads == []


async def test_names_that_the_proxy_looks_up(start: Start, tmp_path: Path) -> None:
    """Exact ones of `egress.allow`, with their port; nothing is looked up here."""
    allow = ("files.example", "*.wide.example:*", "203.0.113.7", "any.example:*")
    async with upstream(tmp_path / "box", resolve="proxy") as proxy:
        gateway = await start(allow=allow)
        for target in ("files.example:443", "any.example:22"):
            assert (await gateway.open_tunnel(target))[2].endswith("established")
        for target in (
            "files.example:80",
            "x.wide.example:443",
            "203.0.113.7:443",
            "[fd00::1]:443",
        ):
            assert "403" in (await refusal(gateway, target)).splitlines()[0]
        assert [head.split(" ")[1] for head in proxy.heads] == [
            "files.example:443",
            "any.example:22",
        ]
        assert gateway.resolver.queries == []
        assert set(gateway.denied_rules) == {"address:unresolved"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 407 No\r\n\r\n", "asks for another user and password (407)"),
        (b"HTTP/1.1 403 No\r\n\r\n", "does not connect to it (403)"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not connect to it (no response)"),
        (b"HTTP/1.1 20000 \r\n\r\n", "does not connect to it (no response)"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 9000, "does not connect to it (no response)"),
    ],
)
async def test_a_proxy_that_does_not_connect_is_named(
    start: Start, tmp_path: Path, answer: bytes, said: str
) -> None:
    """502 with its address, never with user and password."""
    async with upstream(tmp_path / "box", answer, account=ACCOUNT) as proxy:
        gateway = await start()
        gateway.resolver.answers["files.example"] = [[PUBLIC]]
        response = await refusal(gateway, "files.example:443")
        assert response.startswith("HTTP/1.1 502")
        assert f"the proxy 127.0.0.1:{proxy.port} {said}" in response
        assert "pa55" not in response


async def test_a_proxy_that_is_gone_is_named(start: Start, tmp_path: Path) -> None:
    """502, as for a server that is gone."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tell(tmp_path / "box", proxy=f"http://127.0.0.1:{port}")
    gateway = await start()
    gateway.resolver.answers["files.example"] = [[PUBLIC]]
    assert f"the proxy 127.0.0.1:{port} cannot be reached" in await refusal(
        gateway, "files.example:443"
    )

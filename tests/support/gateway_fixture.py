"""A gateway in this process: real sockets, and a resolver and rights that the test controls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentbox.core.paths import Paths
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.server import GatewayServer
from agentbox.plan.model import Plan
from support import tables
from support.api_box import api_plan
from support.fake_authorizer import FakeAuthorizer, right
from support.ports import free_port

TOKEN = "a-token-of-an-agent"


class FakeResolver:
    """A resolver: each name has a list of results, the last of which is repeated."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.queries: list[str] = []

    async def __call__(self, name: str) -> Sequence[str]:
        self.queries.append(name)
        if name not in self.answers:
            raise OSError(-2, "Name or service not known")
        records = self.answers[name]
        return records.pop(0) if len(records) > 1 else records[0]


class GatewayFixture:
    """A running gateway, and the rights of its agent `one` with TOKEN."""

    def __init__(
        self, state: Path, egress: dict[str, Any], limits: dict[str, Any], plan: Plan | None = None
    ) -> None:
        """`plan` is that of an API whose port the agent API uses."""
        plan = plan or replace(
            api_plan(),
            reach=tables.reach(**{"allow_private": ("127.0.0.1:*", "[::1]:*"), **egress}),
            limits=tables.limits(**limits),
        )
        self.authorizer, self.resolver = FakeAuthorizer(plan.limits), FakeResolver()
        self.config = GatewayConfig(paths=Paths(state), plan=plan, port=free_port())
        self.config.state_dir.mkdir(parents=True, exist_ok=True)
        self.server = GatewayServer(self.config, self.authorizer, self.resolver)
        self.authorizer.add("one", TOKEN, [right("net", "connect", "*:*")])
        self.port = self.config.port

    @property
    def denied_rules(self) -> list[str]:
        return [rule for _, _, rule in self.authorizer.refusals]

    async def open_tunnel(
        self, target: str, token: str = TOKEN
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        """Open a tunnel: both ends, and the first line of the response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(
            (
                f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
                f"Proxy-Authorization: Bearer {token}\r\n\r\n"
            ).encode()
        )
        response_head = (await reader.readuntil(b"\r\n\r\n")).decode()
        return reader, writer, response_head.splitlines()[0]

    async def send_raw(self, data: bytes, *, close_write: bool = True) -> bytes:
        """Send bytes and return the response until the gateway closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        if close_write:
            writer.write_eof()
        try:
            async with asyncio.timeout(30):
                return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def serve_tcp(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Run a server on loopback; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

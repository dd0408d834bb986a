"""A gateway in this process: real sockets, a resolver and rights that the test tells."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentbox.core.paths import Paths
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.server import Server
from agentbox.plan.model import Plan
from agentbox.testing.api_box import api_plan
from agentbox.testing.ports import free_port
from agentbox.testing.told_authority import ToldAuthority, right

TOKEN = "a-token-of-an-agent"


class Names:
    """A resolver: each name has a list of answers, the last of which stays."""

    def __init__(self) -> None:
        self.told: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        if name not in self.told:
            raise OSError(-2, "Name or service not known")
        answers = self.told[name]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Room:
    """A running gateway, and what its agent `one` with TOKEN may do."""

    def __init__(self, state: Path, reach: dict[str, Any], limits: dict[str, Any], plan: Plan | None = None) -> None:
        """`plan` is that of an API whose port the door is to use."""
        self.authority, self.names = ToldAuthority(), Names()
        plan = plan or replace(api_plan(), reach={"allow_private": ["127.0.0.1:*", "[::1]:*"], **reach}, limits=limits)
        self.config = GatewayConfig(paths=Paths(state), plan=plan, port=free_port())
        self.config.state.mkdir(parents=True, exist_ok=True)
        self.server = Server(self.config, self.authority, self.names)
        self.authority.add("one", TOKEN, [right("net", "connect", "*:*")])
        self.port = self.config.port

    @property
    def rules(self) -> list[str]:
        return [rule for _, _, rule in self.authority.refusals]

    async def open(self, target: str, token: str = TOKEN) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        """A tunnel: both ends, and the first line of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(
            f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Bearer {token}\r\n\r\n".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        return reader, writer, head.splitlines()[0]

    async def say(self, said: bytes, *, whole: bool = True) -> bytes:
        """All that is answered to some bytes, until the gateway closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        if whole:
            writer.write_eof()
        try:
            async with asyncio.timeout(30):
                return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def served(talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[int]:
    """A server on loopback; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

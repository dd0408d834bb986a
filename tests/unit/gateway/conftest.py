"""Gateways in this process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agentbox.testing.gateway_room import Room

Start = Callable[..., Awaitable[Room]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a gateway; `limits` as in [limits], the rest as in [egress]."""
    async with AsyncExitStack() as stack:

        async def make(limits: dict[str, Any] | None = None, **reach: Any) -> Room:
            room = Room(tmp_path / "box", reach, limits or {})
            await room.server.open()
            stack.push_async_callback(room.server.close)
            return room

        yield make


@pytest.fixture
async def room(start: Start) -> Room:
    return await start()

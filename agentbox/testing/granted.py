"""Agents on a real agent-host, as tests start them, and the gateway's authority that follows it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.orchestrator import AgentHandle, AgentSpec
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.gateway.authorization_cache import Following
from agentbox.gateway.authorizer import Refused
from agentbox.policy.rights.standing import Standing
from agentbox.testing.agent_host import AgentHostBox
from agentbox.testing.until import until

SAYS_TOKEN = 'printf "%s\\n" "$AGENTBOX_TOKEN"; exec sleep 1000'
"""A script for `sh -c`: the token on stdout, then nothing."""


@contextlib.contextmanager
def secretive(folder: Path, manifest: str, **options: Any) -> Iterator[AgentHostBox]:
    """A host of that manifest with one secret, LAB_SECRET, that is `hush`; its restarts wait a fiftieth."""
    found = AgentHostBox(folder, manifest=manifest, **{"scale": 50, **options})
    found.paths.moved_secrets.mkdir(mode=0o700)
    (found.paths.moved_secrets / "LAB_SECRET").write_text("hush")
    found.start()
    try:
        yield found
    finally:
        found.stop()


@contextlib.asynccontextmanager
async def opened(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    """A client of that host."""
    config = SlotConfig(slot="orchestrator", use="local-process", required=True, paths=box.paths)
    found = LocalProcessOrchestrator(config, Deps(metrics=Metrics()))
    await found.open(Deadline.after(30))
    yield found
    await found.close()


@contextlib.asynccontextmanager
async def followed(box: AgentHostBox) -> AsyncIterator[Following]:
    """An authority that knows the whole set."""
    found = Following(box.paths)
    task = asyncio.create_task(found.follow())
    async with asyncio.timeout(10):
        await found.until_known()
    yield found
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def spawn(adapter: LocalProcessOrchestrator, name: str, **more: Any) -> AgentHandle:
    """The agent of [agents] of that name, or with `argv` a program; `more` are fields of its spec."""
    named = {} if "argv" in more else {"agent": name}
    return await adapter.spawn(AgentSpec(**{"name": name, **named, **more}), request_id=uuid7())


async def token_of(adapter: LocalProcessOrchestrator, handle: AgentHandle, generation: int = 1) -> str:
    """The first line that a life writes: with SAYS_TOKEN its token."""
    async with asyncio.timeout(15):
        async for item in adapter.stream(handle.agent_id):
            if item.kind == "stdout" and item.generation == generation:
                return item.data.decode().strip()
    raise AssertionError("it said nothing")


async def standing_of(adapter: LocalProcessOrchestrator, authority: Following, handle: AgentHandle) -> Standing:
    """What it holds, by its own token."""
    return await authorization_of(authority, await token_of(adapter, handle))


async def authorization_of(authority: Following, token: str) -> Standing:
    """Waits until the gateway has the token's authorization: on a busy machine an agent's first output can be faster.

    Raises AssertionError when the gateway does not receive it."""
    result: Standing | None = None

    def received() -> bool:
        nonlocal result
        with contextlib.suppress(Refused):
            result = authority.identify(token)
        return result is not None

    await until(received, "the gateway has the authorization")
    assert result is not None
    return result


async def grant_id(
    adapter: LocalProcessOrchestrator, handle: AgentHandle, scope: str, pattern: str, group: str = "grants"
) -> str:
    """The id of a grant, of `grants` or `secrets`."""
    rows: Any = (await adapter.get(handle.agent_id)).policy[group]
    found: str = next(row["grant_id"] for row in rows if row["scope"] == scope and pattern in row["patterns"])
    return found

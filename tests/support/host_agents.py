"""Agents on a real agent-host, and the gateway's authorizations of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from agentbox_testkit.wait import wait_until

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.orchestrator import AgentHandle, AgentSpec
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.authorizer import AccessDenied
from agentbox.policy.rights.authorization import Authorization
from support.agent_host import AgentHostBox

PRINT_TOKEN = 'printf "%s\\n" "$AGENTBOX_TOKEN"; exec sleep 1000'
"""A script for `sh -c`: prints the token, then nothing."""


@contextlib.contextmanager
def host_with_secret(directory: Path, manifest: str, **options: Any) -> Iterator[AgentHostBox]:
    """Run a host of that manifest with one secret, LAB_SECRET=`hush`; restart delays are divided by
    50.
    """
    host = AgentHostBox(directory, manifest=manifest, **{"scale": 50, **options})
    host.paths.moved_secrets.mkdir(mode=0o700)
    (host.paths.moved_secrets / "LAB_SECRET").write_text("hush")
    host.start()
    try:
        yield host
    finally:
        host.stop()


@contextlib.asynccontextmanager
async def open_orchestrator(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    """Open a client of that host."""
    orchestrator = LocalProcessOrchestrator(box.slot_config(), Deps(metrics=Metrics()))
    await orchestrator.open(Deadline.after(30))
    yield orchestrator
    await orchestrator.close()


@contextlib.asynccontextmanager
async def follow_authorizations(box: AgentHostBox) -> AsyncIterator[AuthorizationCache]:
    """Yield the authorizer after it has received all authorizations."""
    authorizer = AuthorizationCache(box.paths)
    task = asyncio.create_task(authorizer.run())
    async with asyncio.timeout(10):
        await authorizer.wait_synced()
    yield authorizer
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def spawn(adapter: LocalProcessOrchestrator, name: str, **fields: Any) -> AgentHandle:
    """Spawn the agent of that name in [agents], or with `argv` a program; `fields` are those of its
    spec.
    """
    defaults = {} if "argv" in fields else {"agent": name}
    return await adapter.spawn(
        AgentSpec(**{"name": name, **defaults, **fields}), request_id=uuid7()
    )


async def token_of(
    adapter: LocalProcessOrchestrator, handle: AgentHandle, generation: int = 1
) -> str:
    """Return the first output line of a generation: with PRINT_TOKEN its token."""
    async with asyncio.timeout(15):
        async for item in adapter.stream(handle.agent_id):
            if item.kind == "stdout" and item.generation == generation:
                return item.data.decode().strip()
    raise AssertionError("the agent printed nothing")


async def agent_authorization(
    adapter: LocalProcessOrchestrator, authorizer: AuthorizationCache, handle: AgentHandle
) -> Authorization:
    """Return the agent's authorization, by its own token."""
    return await authorization_of(authorizer, await token_of(adapter, handle))


async def authorization_of(authorizer: AuthorizationCache, token: str) -> Authorization:
    """Wait until the gateway has the token's authorization: on a busy machine an agent's first
    output can be faster.

    Raises AssertionError if the gateway does not receive it.
    """
    result: Authorization | None = None

    def received() -> bool:
        nonlocal result
        with contextlib.suppress(AccessDenied):
            result = authorizer.identify(token)
        return result is not None

    await wait_until(received, "the gateway has received the authorization")
    assert result is not None
    return result


async def grant_id(
    adapter: LocalProcessOrchestrator,
    handle: AgentHandle,
    scope: str,
    pattern: str,
    group: str = "grants",
) -> str:
    """Return the id of a grant, of `grants` or `secrets`."""
    rows: Any = (await adapter.get(handle.agent_id)).policy[group]
    result: str = next(
        row["grant_id"] for row in rows if row["scope"] == scope and pattern in row["patterns"]
    )
    return result

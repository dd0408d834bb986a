"""The gateway's authorizer against a real agent-host: known agents, their rights, and the effect of
a lost connection."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.agent_host import AgentHostBox
from support.host_agents import authorization_of, follow_authorizations, open_orchestrator

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.contracts.orchestrator import AgentHandle, AgentSpec
from agentbox.core.ids import uuid7
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.authorizer import AccessDenied

MANIFEST = """
[egress]
allow = ["example.com", "*.pkg.example:*"]
[policies.fetcher]
base = "standard"
[[policies.fetcher.net]]
mode = "allow"
patterns = ["*:8443"]
[[policies.fetcher.tool]]
mode = "deny"
patterns = ["git/*"]
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    result = AgentHostBox(tmp_path_factory.mktemp("box"), manifest=MANIFEST)
    result.start()
    yield result
    result.stop()


@pytest.fixture
async def adapter(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    async with open_orchestrator(box) as result:
        yield result


@pytest.fixture
async def authorizer(box: AgentHostBox) -> AsyncIterator[AuthorizationCache]:
    async with follow_authorizations(box) as result:
        yield result


async def started(
    adapter: LocalProcessOrchestrator, *, profile: str = "sandboxed", **more: str
) -> tuple[AgentHandle, str]:
    """An agent that waits, and the token that it finds in its environment."""
    script = 'printf "%s\\n" "$AGENTBOX_TOKEN"; exec sleep 1000'
    spec = AgentSpec(name="test", argv=("sh", "-c", script), profile=profile, **more)
    handle = await adapter.spawn(spec, request_id=uuid7())
    async for item in adapter.stream(handle.agent_id):
        if item.kind == "stdout":
            return handle, item.data.decode().strip()
    raise AssertionError("it said nothing")


async def test_its_own_token_names_the_agent(
    adapter: LocalProcessOrchestrator, authorizer: AuthorizationCache
) -> None:
    """And no other does: not the hash, not a part, not a text that is no token."""
    handle, token = await started(adapter)
    authorization = await authorization_of(authorizer, token)
    assert (authorization.agent_id, authorization.generation, authorization.profile) == (
        handle.agent_id,
        1,
        "sandboxed",
    )
    assert len(token) >= 43
    for wrong in (authorization.token_sha256, token[:-1], "", token + "\udc00"):
        with pytest.raises(AccessDenied):
            authorizer.identify(wrong)
    await adapter.terminate(handle)


async def test_only_the_hash_is_kept(adapter: LocalProcessOrchestrator, box: AgentHostBox) -> None:
    """No file of the box has the token."""
    handle, token = await started(adapter)
    result = subprocess.run(
        ["grep", "-rlF", "--exclude-dir=streams", token, box.paths.prefix],
        capture_output=True,
        check=False,
    )
    assert result.stdout == b""
    await adapter.terminate(handle)


async def test_a_policy_decides_below_the_ceiling(
    adapter: LocalProcessOrchestrator, authorizer: AuthorizationCache
) -> None:
    """`egress.allow` cuts every net pattern down; the last rule that matches decides in the other scopes."""
    handle, token = await started(adapter, profile="fetcher")
    caller = await authorization_of(authorizer, token)
    for target in ("example.com:443", "a.pkg.example:8443", "a.pkg.example:80"):
        await authorizer.check(caller, "net", "connect", target)
    await authorizer.check(caller, "tool", "call", "memory/search")
    for scope, operation, value in (
        ("net", "connect", "example.com:8443"),  # the pattern allows it, the ceiling does not
        ("net", "connect", "other.example:8443"),
        ("tool", "call", "git/commit"),
        ("llm", "call", "openai/any"),
        ("agent", "spawn", "any"),
    ):
        with pytest.raises(AccessDenied):
            await authorizer.check(caller, scope, operation, value)  # type: ignore[arg-type]
    await adapter.terminate(handle)


async def test_the_end_of_an_agent_ends_its_token(
    adapter: LocalProcessOrchestrator, authorizer: AuthorizationCache
) -> None:
    """Waiting calls are notified, and a stored authorization is no longer valid."""
    handle, token = await started(adapter)
    caller = await authorization_of(authorizer, token)
    cut = authorizer.revocation(caller)
    await authorizer.check(caller, "tool", "call", "any/tool")
    await adapter.terminate(handle)
    async with asyncio.timeout(30):
        await cut
    with pytest.raises(AccessDenied):
        authorizer.identify(token)
    with pytest.raises(AccessDenied):
        await authorizer.check(caller, "tool", "call", "any/tool")
    assert authorizer.revocation(caller).done()


async def test_a_token_of_an_earlier_life(
    adapter: LocalProcessOrchestrator, authorizer: AuthorizationCache
) -> None:
    """A restart issues a new token; the old one is unknown."""
    handle, token = await started(adapter, restart="always")
    await adapter.signal(handle, "INT")
    async for item in adapter.stream(handle.agent_id):
        if item.kind == "stdout" and item.generation == 2:
            again = item.data.decode().strip()
            break
    assert (await authorization_of(authorizer, again)).generation == 2
    with pytest.raises(AccessDenied):
        authorizer.identify(token)
    await adapter.terminate(AgentHandle(agent_id=handle.agent_id, generation=2))


async def test_a_lost_connection_takes_everything_back(tmp_path: Path) -> None:
    """agent-host killed: open futures are done and no agent is known; its next start is followed
    automatically."""
    box = AgentHostBox(tmp_path, manifest=MANIFEST, scale=100)
    box.start()
    try:
        async with open_orchestrator(box) as adapter, follow_authorizations(box) as authorizer:
            _, token = await started(adapter, restart="always")
            caller = await authorization_of(authorizer, token)
            cut = authorizer.revocation(caller)
            box.kill()
            async with asyncio.timeout(30):
                await cut
            with pytest.raises(AccessDenied):
                authorizer.identify(token)
            with pytest.raises(AccessDenied):
                await authorizer.check(caller, "tool", "call", "any/tool")
            box.start()
            await wait_until(lambda: authorizer.is_synced, "agent-host is followed again")
            with pytest.raises(AccessDenied):
                authorizer.identify(token)
    finally:
        box.stop()

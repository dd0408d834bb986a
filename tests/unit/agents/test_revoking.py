"""Grants that expire, are used up or are revoked, on a real agent-host: at once, for children too,
and permanently."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from support.agent_host import AgentHostBox
from support.host_agents import (
    PRINT_TOKEN,
    agent_authorization,
    follow_authorizations,
    grant_id,
    host_with_secret,
    open_orchestrator,
    spawn,
    token_of,
)

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.contracts.orchestrator import Constraint
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import InvalidTransition, NotFound, PermissionDenied
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.authorizer import AccessDenied

MANIFEST = f"""
[agents.lead]
command = ["sh", "-c", '{PRINT_TOKEN}']
children = ["reader"]
secrets = ["LAB_SECRET"]
[agents.reader]
command = ["sh", "-c", '{PRINT_TOKEN}']
profile = "readonly"
secrets = ["LAB_SECRET"]
[policies.bare]
base = "minimal"
[[policies.bare.tool]]
mode = "allow"
patterns = ["memory/*"]
[[policies.bare.tool]]
mode = "deny"
patterns = ["memory/drop"]
"""
BARE: Mapping[str, Any] = {  # a policy that runs no second program, so the shell waits by itself
    "argv": ("sh", "-c", 'printf "%s\\n" "$AGENTBOX_TOKEN"; read line'), "profile": "bare", "stdin": "pipe",
}  # fmt: skip


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    with host_with_secret(tmp_path_factory.mktemp("box"), MANIFEST) as found:
        yield found


async def test_a_revoked_grant_is_gone_for_all_that_descends(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """The next request of parent and child is refused; waiting calls get an error; a second
    revocation is not an error."""
    parent = await spawn(adapter, "p", **BARE)
    child = await spawn(adapter, "c", **BARE, parent_id=parent.agent_id)
    whos = [await agent_authorization(adapter, authority, one) for one in (parent, child)]
    cuts = [authority.revocation(who) for who in whos]
    for who in whos:
        await authority.check(who, "tool", "call", "memory/search")
    grant = await grant_id(adapter, parent, "tool", "memory/*")
    for _ in range(2):
        info = await adapter.revoke(parent.agent_id, grant)
    rows: Any = info.policy["grants"]
    assert next(row["state"] for row in rows if row["grant_id"] == grant) == "revoked"
    async with asyncio.timeout(30):
        await asyncio.gather(*cuts)
    for who in whos:
        with pytest.raises(AccessDenied):
            await authority.check(who, "tool", "call", "memory/search")
    with pytest.raises(PermissionDenied):
        await spawn(adapter, "c", argv=("true",), profile="bare", parent_id=parent.agent_id)


async def test_what_the_kernel_holds_ends_the_process(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """It restarts without the grant; so does a child, and one that never restarts has ended."""
    (box.paths.workspace / "seen").write_text("seen")
    script = f'cat "{box.paths.workspace}/seen" 2>/dev/null || echo closed; exec sleep 1000'
    parent = await spawn(
        adapter, "p", argv=("sh", "-c", script), profile="readonly", restart="always"
    )
    child = await spawn(
        adapter,
        "c",
        argv=("sh", "-c", script),
        profile="readonly",
        restart="always",
        parent_id=parent.agent_id,
    )
    last = await spawn(
        adapter, "l", argv=("sleep", "1000"), profile="readonly", parent_id=parent.agent_id
    )
    for one in (parent, child):
        assert await token_of(adapter, one) == "seen"
    await adapter.revoke(parent.agent_id, await grant_id(adapter, parent, "fs", "$WORKSPACE/**"))
    for one in (parent, child):
        assert await token_of(adapter, one, generation=2) == "closed"
    async with asyncio.timeout(10):
        assert [item async for item in adapter.stream(last.agent_id)][-1].kind == "exit"


async def test_a_secret_is_taken_back(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache, box: AgentHostBox
) -> None:
    """Its file is removed at once, a child's too; the authorization no longer lists it."""
    lead = await spawn(adapter, "lead")
    child = await spawn(adapter, "reader", parent_id=lead.agent_id)
    files = [box.paths.branches / one.agent_id / "tmp/secrets/LAB_SECRET" for one in (lead, child)]
    await agent_authorization(adapter, authority, lead)
    assert all(path.exists() for path in files)
    await adapter.revoke(
        lead.agent_id, await grant_id(adapter, lead, "env", "LAB_SECRET", "secrets")
    )
    assert not any(path.exists() for path in files)
    token = await token_of(adapter, lead)
    await wait_until(lambda: authority.identify(token).secrets == (), "the standing is told")


async def test_only_grants_are_taken_back(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """A denial stays, and a grant of another agent is unknown here."""
    one, other = await spawn(adapter, "lead"), await spawn(adapter, "reader")
    with pytest.raises(NotFound):
        await adapter.revoke(one.agent_id, await grant_id(adapter, other, "fs", "$WORKSPACE/**"))
    with pytest.raises(NotFound):
        await adapter.revoke(uuid7(), "g_any")
    bare = await spawn(adapter, "p", **BARE)
    with pytest.raises(InvalidTransition):
        await adapter.revoke(bare.agent_id, await grant_id(adapter, bare, "tool", "memory/drop"))
    with pytest.raises(AccessDenied):
        await authority.check(
            await agent_authorization(adapter, authority, bare), "tool", "call", "memory/drop"
        )


async def test_uses_are_shared_and_end(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """Three uses of a parent are three for it and all its children together; running calls
    continue, and use none; a rate refuses the next."""
    bound = Constraint(scope="tool", uses=3)
    parent = await spawn(adapter, "p", **BARE, constraints=(bound,))
    child = await spawn(adapter, "c", **BARE, parent_id=parent.agent_id)
    whos = [await agent_authorization(adapter, authority, one) for one in (parent, child, parent)]
    for who in whos:
        await authority.check(who, "tool", "call", "memory/search")
    for who in whos:
        await authority.check(who, "tool", "call", "memory/search", consume=False)
        with pytest.raises(AccessDenied, match="3 uses"):
            await authority.check(who, "tool", "call", "memory/search")
    slow = await spawn(adapter, "s", **BARE, constraints=(Constraint(scope="tool", rate=1),))
    who = await agent_authorization(adapter, authority, slow)
    await authority.check(who, "tool", "call", "memory/search")
    with pytest.raises(AccessDenied, match="a minute"):
        await authority.check(who, "tool", "call", "memory/search")


async def test_a_grant_ends_in_time(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """A checked one is refused and reported; one of the kernel's ends the process."""
    bounds = (Constraint(scope="tool", expires_s=5.0),)
    handle = await spawn(adapter, "p", **BARE, constraints=bounds)
    who = await agent_authorization(adapter, authority, handle)
    cut = authority.revocation(who)
    await authority.check(who, "tool", "call", "memory/search")
    kernel = (Constraint(scope="fs", expires_s=0.5),)
    brief = await spawn(adapter, "b", **BARE, constraints=kernel)
    async with asyncio.timeout(30):
        await cut
        items = [item async for item in adapter.stream(brief.agent_id)]
    with pytest.raises(AccessDenied):
        await authority.check(who, "tool", "call", "memory/search")
    assert json.loads(items[-1].data)["signal"] == "SIGTERM"


async def test_a_restart_of_the_host_widens_nothing(tmp_path: Path) -> None:
    """Revoked stays revoked, uses stay used, an expiry stays where it was."""
    box = AgentHostBox(tmp_path, manifest=MANIFEST, scale=100)
    box.start()
    bound = Constraint(scope="tool", uses=2, expires_s=1000)
    try:
        async with open_orchestrator(box) as adapter, follow_authorizations(box) as authority:
            handle = await spawn(adapter, "p", **BARE, restart="always", constraints=(bound,))
            who = await agent_authorization(adapter, authority, handle)
            await authority.check(who, "tool", "call", "memory/search")
            await adapter.revoke(handle.agent_id, await grant_id(adapter, handle, "fs", "$TMP/**"))
            before: Any = (await adapter.get(handle.agent_id)).policy["grants"]
        box.kill()
        box.start()
        async with open_orchestrator(box) as adapter, follow_authorizations(box) as authority:
            after: Any = (await adapter.get(handle.agent_id)).policy["grants"]
            assert after == before
    finally:
        box.stop()

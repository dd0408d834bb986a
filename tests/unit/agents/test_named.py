"""Agents of the manifest on a real agent-host: the rights of their table, those of their children,
and revocation."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import PRINT_TOKEN, agent_authorization, host_with_secret, spawn

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime import context
from agentbox.contracts.orchestrator import Constraint, Limits
from agentbox.core.slot_errors import (
    AdapterError,
    PermissionDenied,
    QuotaExceeded,
    SpawnError,
    ValidationError,
)
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.authorizer import AccessDenied

MANIFEST = f"""
[egress]
allow = ["example.com"]
[providers.house]
enabled = true
kind = "anthropic"
env_var = "HOUSE_KEY"
[agents.lead]
command = ["sh", "-c"]
args = ['{PRINT_TOKEN}']
profile = "standard"
provider = "house"
children = ["reader", "wide"]
max_instances = 3
env = ["LAB_NOTE"]
secrets = ["LAB_SECRET"]
[agents.lead.limits]
fds = 512
[agents.lead.restart]
policy = "always"
backoff_seconds = 1
[agents.reader]
command = ["sh", "-c", '{PRINT_TOKEN}']
profile = "readonly"
secrets = ["LAB_SECRET"]
[agents.reader.llm]
max_tokens = 2000000
[agents.wide]
command = ["sh", "-c", '{PRINT_TOKEN}']
profile = "reach"
[agents.off]
command = ["true"]
enabled = false
[agents.shell]
command = ["sh", "-c", 'env; cat "$AGENTBOX_SECRETS/LAB_SECRET"; stat -c %a "$AGENTBOX_SECRETS/LAB_SECRET"']
provider = "house"
secrets = ["LAB_SECRET"]
[agents.key]
command = ["true"]
secrets = ["HOUSE_KEY"]
[policies.reach]
base = "standard"
[[policies.reach.net]]
mode = "allow"
operations = ["tcp"]
patterns = ["5432"]
[policies.bare]
base = "minimal"
[[policies.bare.tool]]
mode = "allow"
patterns = ["memory/*"]
"""
AGENT = "urn:agentbox:agent:"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    with host_with_secret(
        tmp_path_factory.mktemp("box"), MANIFEST, options={"max_depth": 2}
    ) as found:
        yield found


async def test_a_name_is_enough(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """Command, policy, provider, limits and restarts are the manifest's."""
    handle = await spawn(adapter, "lead")
    info = await adapter.get(handle.agent_id)
    assert info.spec.argv == ("sh", "-c", PRINT_TOKEN)
    assert (info.spec.profile, info.spec.restart) == ("standard", "always")
    who = await agent_authorization(adapter, authority, handle)
    assert (who.provider, who.children, who.secrets) == (
        "house",
        ("reader", "wide"),
        ("LAB_SECRET",),
    )
    assert who.limits["fds"] == 512
    assert who.limits["egress"] == 1 << 30
    assert who.budget is not None
    assert who.budget.max_tokens == 1_000_000
    await authority.check(who, "llm", "call", "house/any-model")
    await authority.check(who, "net", "connect", "example.com:443")
    await authority.check(who, "agent", "spawn", "reader")
    with pytest.raises(AccessDenied):
        await authority.check(who, "agent", "spawn", "shell")


async def test_what_an_agent_finds_in_its_environment(adapter: LocalProcessOrchestrator) -> None:
    """Its provider's address and its own token for a key; the secret as a file of mode 0400, in no variable."""
    handle = await spawn(adapter, "shell", labels={"a": "b"})
    text = b"".join(
        [item.data async for item in adapter.stream(handle.agent_id) if item.kind == "stdout"]
    ).decode()
    pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert pairs["ANTHROPIC_BASE_URL"].endswith("/llm/house")
    assert pairs["ANTHROPIC_API_KEY"] == pairs["AGENTBOX_TOKEN"]
    assert "HTTP_PROXY" not in pairs
    assert text.endswith("hush400\n")
    assert "hush" not in pairs.values()
    assert "LAB_SECRET" not in pairs


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"name": "lead", "agent": "lead", "argv": ("true",)}, PermissionDenied),
        ({"name": "lead", "agent": "lead", "profile": "readonly"}, PermissionDenied),
        ({"name": "lead", "agent": "lead", "env": {"A": "b"}}, PermissionDenied),
        ({"name": "lead", "agent": "lead", "limits": Limits(fds=1000)}, QuotaExceeded),
        ({"name": "off"}, SpawnError),
        ({"name": "key"}, SpawnError),
        ({"name": "stranger"}, ValidationError),
        ({"name": "stranger", "argv": ("true",), "profile": "nothing"}, SpawnError),
        (
            {
                "name": "stranger",
                "argv": ("true",),
                "constraints": (Constraint(scope="net", uses=1),),
            },
            ValidationError,
        ),
        (
            {
                "name": "stranger",
                "argv": ("true",),
                "constraints": (Constraint(scope="fs", uses=1),),
            },
            ValidationError,
        ),
    ],
)
async def test_what_is_refused(
    adapter: LocalProcessOrchestrator, more: dict[str, Any], kind: type[AdapterError]
) -> None:
    """Saying otherwise than the manifest, what it switches off, what it does not know."""
    with pytest.raises(kind):
        await spawn(adapter, **more)


async def test_an_admin_may_say_otherwise(adapter: LocalProcessOrchestrator) -> None:
    """Scope admin overrides the command of an agent of the manifest."""
    with context.as_caller(context.CallContext(principal="urn:op", scopes=frozenset({"admin"}))):
        handle = await spawn(adapter, "lead", agent="lead", argv=("sleep", "1000"), profile="bare")
    assert (await adapter.get(handle.agent_id)).spec.argv == ("sleep", "1000")


async def test_instances_are_counted(adapter: LocalProcessOrchestrator) -> None:
    """The next after `max_instances` is refused by that key."""
    await spawn(adapter, "reader")
    with pytest.raises(QuotaExceeded) as caught:
        await spawn(adapter, "reader")
    assert caught.value.members["config_path"] == "agents.reader.max_instances"


async def test_a_child_holds_no_more(
    adapter: LocalProcessOrchestrator, authority: AuthorizationCache
) -> None:
    """A wider one is refused with what is wider; a narrower one has its parent's bounds."""
    lead = await spawn(adapter, "lead")
    with pytest.raises(PermissionDenied, match="net tcp 5432"):
        await spawn(adapter, "wide", parent_id=lead.agent_id)
    child = await spawn(adapter, "reader", parent_id=lead.agent_id)
    who = await agent_authorization(adapter, authority, child)
    assert [one.agent_id for one in who.ancestors] == [lead.agent_id]
    assert who.limits["fds"] == 512
    with pytest.raises(PermissionDenied, match="secret LAB_SECRET"):
        await spawn(adapter, "shell", parent_id=(await spawn(adapter, "wide")).agent_id)


async def test_an_agent_starts_its_own_children_only(adapter: LocalProcessOrchestrator) -> None:
    """By name, below itself, and those that its policy names."""
    lead, other = await spawn(adapter, "lead"), await spawn(adapter, "wide")
    with context.as_caller(context.CallContext(principal=AGENT + lead.agent_id)):
        for more in (
            {"name": "reader"},
            {"name": "reader", "parent_id": other.agent_id},
            {"name": "shell", "parent_id": lead.agent_id},
            {"name": "x", "argv": ("true",), "parent_id": lead.agent_id},
        ):
            with pytest.raises(PermissionDenied):
                await spawn(adapter, **more)
        await spawn(adapter, "reader", parent_id=lead.agent_id)

"""What a new agent is given: its policy resolved and bound, a grant for each rule, and what its own table adds."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentbox.agents.admission.constraints import constrained
from agentbox.agents.admission.definitions import limits_of
from agentbox.agents.admission.injected_env import is_variable
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.entry import Entry
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.records.plain import plain
from agentbox.core.slot_errors import InvalidTransition, PermissionDenied, SpawnError
from agentbox.manifest.tables.agents import Llm
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.policy import Policy
from agentbox.policy.profiles import ChainError, profiles
from agentbox.policy.rights.holding import Grant, Holding
from agentbox.policy.rights.narrowing import narrowed, wider
from agentbox.policy.rights.policies import Resolved, bound, resolve
from agentbox.policy.rights.rights import allowing, new_id, rights_of
from agentbox.policy.rights.standing import PRINCIPAL, Budget, Right

_SHOWN = 3


def holding_of(spec: AgentSpec, config: HostConfig) -> Holding:
    """For a settled spec (`named.settled`). Raises SpawnError (stage profile, secrets) or ValidationError."""
    found = _resolved(spec, config)
    table = config.agents.get(spec.agent)
    try:
        policy = bound(found, _bindings(spec, table), config.reach.get("allow", ()))
    except PatternError as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    holding = Holding(
        root=found.root, grants=tuple(Grant(right=right) for right in rights_of(policy)), limits=limits_of(spec, config),
        budget=_budget(policy, table), workspace=spec.workspace,
    )  # fmt: skip
    if table is not None:
        holding = replace(
            holding, agent=spec.agent, provider=table["provider"], approval_required=tuple(table["approval_required"]),
            children=tuple(table["children"]), env=tuple(table["env"]),
            workspace_dir=table["workspace_dir"], restart=table["restart"], secrets=tuple(map(_secret, table["secrets"])),
        )  # fmt: skip
    _check_secrets(spec, holding, config)
    return constrained(holding, spec.constraints, time.time())


def below(holding: Holding, spec: AgentSpec, parent: Entry | None, principal: str) -> Holding:
    """The same as the child of a parent. Raises PermissionDenied for what the parent does not hold, and where an agent
    starts what it may not."""
    by_agent = principal.startswith(PRINCIPAL)
    if by_agent and (parent is None or principal != f"{PRINCIPAL}{parent.agent_id}"):
        raise _denied(spec, "an agent starts children of its own only")
    if parent is None:
        return holding
    now = time.time()
    if by_agent and not allowing(parent.holding.checked(now), "agent", "spawn", spec.agent):
        raise _denied(spec, f"{parent.spec.name} holds no right to start it")
    if more := wider(holding, parent.holding, now):
        rest = f" and {len(more) - _SHOWN} more" if len(more) > _SHOWN else ""
        raise _denied(spec, f"it would hold what {parent.spec.name} does not: {'; '.join(more[:_SHOWN])}{rest}")
    return narrowed(holding, parent.holding, now)


def check_parent(parent: Entry) -> None:
    """Raises InvalidTransition for one that has ended."""
    if parent.over:
        members: dict[str, Any] = {"id": parent.agent_id, "from": parent.state, "to": "parent", "blockers": []}
        raise InvalidTransition(f"cannot make agent {parent.agent_id} parent: it has ended", **members)


def _resolved(spec: AgentSpec, config: HostConfig) -> Resolved:
    try:
        found = resolve(spec.profile, config.policies)
    except (ChainError, PatternError) as error:
        raise _unknown(spec, config) from error
    if found.unrestricted and not config.dev:
        raise _unknown(spec, config)
    return found


def _bindings(spec: AgentSpec, table: Mapping[str, Any] | None) -> Mapping[str, Sequence[str]]:
    """Of a program given ad hoc `$ENV` is what its spec sets."""
    if table is None:
        return {"$PROVIDER": (), "$CHILDREN": (), "$ENV": tuple(filter(is_variable, spec.env))}
    provider = [table["provider"]] if table["provider"] else []
    return {"$PROVIDER": provider, "$CHILDREN": table["children"], "$ENV": table["env"]}


def _budget(policy: Policy, table: Mapping[str, Any] | None) -> Budget | None:
    """None where no model may be asked."""
    if not any(grant.scope == "llm" for grant in policy.grants):
        return None
    return Budget(**(plain(Llm()) if table is None else table["llm"]))


def _secret(name: str) -> Grant:
    """Its right is that of a variable, though it comes as a file."""
    return Grant(right=Right(grant_id=new_id(), scope="env", mode="allow", operations=("read",), patterns=(name,)))


def _check_secrets(spec: AgentSpec, holding: Holding, config: HostConfig) -> None:
    """A key of a model provider is nobody's but the gateway's."""
    keys = {table["env_var"] for table in config.providers.values()}
    for name in (text for one in holding.secrets for text in one.right.patterns):
        if name in keys:
            raise SpawnError(
                f"cannot start {spec.name}: the secret {name} is the key of a provider, which no agent is given",
                hint="name the provider in agents.<name>.provider", stage="secrets",
            )  # fmt: skip


def _denied(spec: AgentSpec, why: str) -> PermissionDenied:
    return PermissionDenied(f"cannot start {spec.name}: {why}", scope="agents:write")


def _unknown(spec: AgentSpec, config: HostConfig) -> SpawnError:
    known = [name for name in (*profiles(), *config.policies) if config.dev or name != "unrestricted"]
    return SpawnError(
        f"cannot start {spec.name}: the profile {spec.profile!r} is unknown; known: {', '.join(known)}", stage="profile"
    )

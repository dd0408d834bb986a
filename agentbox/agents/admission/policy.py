"""Grants of a new agent: its policy resolved and bound, one grant per rule, and the additions of
its table."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentbox.agents.admission.constraints import apply_constraints
from agentbox.agents.admission.definitions import limits_of
from agentbox.agents.admission.injected_env import is_variable
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.records.plain import to_plain
from agentbox.core.slot_errors import InvalidTransition, PermissionDenied, SpawnError
from agentbox.manifest.tables.agents import LlmTable
from agentbox.plan.tables import AgentPlan
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.policy import Policy
from agentbox.policy.profiles import ChainError, profiles
from agentbox.policy.rights.authorization import PRINCIPAL, Budget, Right
from agentbox.policy.rights.grant_set import Grant, GrantSet
from agentbox.policy.rights.policies import ResolvedPolicy, bind_policy, resolve
from agentbox.policy.rights.restriction import excess_rights, restrict_to_parent
from agentbox.policy.rights.rights import build_rights, find_allowing_right, new_id

_MAX_LISTED = 3


def build_grant_set(spec: AgentSpec, config: HostConfig) -> GrantSet:
    """Expects a resolved spec (`definitions.resolve_spec`). Raises SpawnError (stage profile,
    secrets) or ValidationError."""
    resolved = _resolve_profile(spec, config)
    table = config.agents.get(spec.agent)
    try:
        policy = bind_policy(resolved, _bindings(spec, table), config.egress_allow)
    except PatternError as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    grant_set = GrantSet(
        root=resolved.root,
        grants=tuple(Grant(right=right) for right in build_rights(policy)),
        limits=to_plain(limits_of(spec, config)),
        budget=_budget(policy, table),
        workspace=spec.workspace,
    )
    if table is not None:
        grant_set = replace(
            grant_set,
            agent=spec.agent,
            provider=table.provider,
            approval_required=table.approval_required,
            children=table.children,
            env=table.env,
            workspace_dir=table.workspace_dir,
            restart=to_plain(table.restart),
            secrets=tuple(map(_secret_grant, table.secrets)),
        )
    _check_secrets(spec, grant_set, config)
    return apply_constraints(grant_set, spec.constraints, time.time())


def inherit_grants(
    grant_set: GrantSet, spec: AgentSpec, parent: AgentRecord | None, principal: str
) -> GrantSet:
    """Restrict the grants to those of the parent. Raises PermissionDenied for what the parent does
    not hold, and for an agent that may not start this child."""
    by_agent = principal.startswith(PRINCIPAL)
    if by_agent and (parent is None or principal != f"{PRINCIPAL}{parent.agent_id}"):
        raise _denied(spec, "an agent may start only its own children")
    if parent is None:
        return grant_set
    now = time.time()
    if by_agent and not find_allowing_right(
        parent.grant_set.checked_rights(now), "agent", "spawn", spec.agent
    ):
        raise _denied(spec, f"{parent.spec.name} has no right to start it")
    if excess := excess_rights(grant_set, parent.grant_set, now):
        suffix = f" and {len(excess) - _MAX_LISTED} more" if len(excess) > _MAX_LISTED else ""
        raise _denied(
            spec,
            f"it would have rights that {parent.spec.name} does not have: "
            f"{'; '.join(excess[:_MAX_LISTED])}{suffix}",
        )
    return restrict_to_parent(grant_set, parent.grant_set, now)


def check_parent(parent: AgentRecord) -> None:
    """Raises InvalidTransition for a parent that has ended."""
    if parent.over:
        members: dict[str, Any] = {
            "id": parent.agent_id,
            "from": parent.state,
            "to": "parent",
            "blockers": [],
        }
        raise InvalidTransition(
            f"cannot use agent {parent.agent_id} as parent: it has ended", **members
        )


def _resolve_profile(spec: AgentSpec, config: HostConfig) -> ResolvedPolicy:
    try:
        resolved = resolve(spec.profile, config.policies)
    except (ChainError, PatternError) as error:
        raise _unknown_profile(spec, config) from error
    if resolved.is_unrestricted and not config.dev:
        raise _unknown_profile(spec, config)
    return resolved


def _bindings(spec: AgentSpec, table: AgentPlan | None) -> Mapping[str, Sequence[str]]:
    """For an ad hoc program, `$ENV` is what its spec sets."""
    if table is None:
        return {"$PROVIDER": (), "$CHILDREN": (), "$ENV": tuple(filter(is_variable, spec.env))}
    provider = [table.provider] if table.provider else []
    return {"$PROVIDER": provider, "$CHILDREN": table.children, "$ENV": table.env}


def _budget(policy: Policy, table: AgentPlan | None) -> Budget | None:
    """None if the policy permits no model."""
    if not any(grant.scope == "llm" for grant in policy.permissions):
        return None
    return Budget(**to_plain(LlmTable() if table is None else table.llm))


def _secret_grant(name: str) -> Grant:
    """The right is that of a variable, although the secret is provided as a file."""
    return Grant(
        right=Right(
            grant_id=new_id(), scope="env", mode="allow", operations=("read",), patterns=(name,)
        )
    )


def _check_secrets(spec: AgentSpec, grant_set: GrantSet, config: HostConfig) -> None:
    """Only the gateway holds the keys of model providers."""
    provider_keys = {provider.env_var for provider in config.providers.values()}
    for name in (text for grant in grant_set.secrets for text in grant.right.patterns):
        if name in provider_keys:
            raise SpawnError(
                f"cannot start {spec.name}: "
                f"the secret {name} is a provider key, which agents cannot receive",
                hint="set agents.<name>.provider instead",
                stage="secrets",
            )


def _denied(spec: AgentSpec, reason: str) -> PermissionDenied:
    return PermissionDenied(f"cannot start {spec.name}: {reason}", scope="agents:write")


def _unknown_profile(spec: AgentSpec, config: HostConfig) -> SpawnError:
    available = [
        name for name in (*profiles(), *config.policies) if config.dev or name != "unrestricted"
    ]
    return SpawnError(
        f"cannot start {spec.name}: unknown profile {spec.profile!r}; "
        f"available: {', '.join(available)}",
        stage="profile",
    )

"""Grants of a new agent: one per rule of its policy and those of its table, within the bounds that
the caller sets and within the parent's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from agentbox.agents.admission.draft import AdmissionInputs, Draft
from agentbox.agents.config import HostConfig
from agentbox.contracts.orchestrator import AgentSpec, Constraint, Limits
from agentbox.core.slot_errors import PermissionDenied, SpawnError, ValidationError
from agentbox.manifest.tables.agents import ModelBudgetTable
from agentbox.plan.tables import AgentPlan
from agentbox.policy.cost import to_micros
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import is_pattern
from agentbox.policy.policy import Policy
from agentbox.policy.profiles import PolicyChainError, profiles
from agentbox.policy.rights import delegation
from agentbox.policy.rights.authorization import PRINCIPAL, Budget, Right
from agentbox.policy.rights.grant_set import Grant, GrantSet
from agentbox.policy.rights.mcp import server_patterns
from agentbox.policy.rights.policies import ResolvedPolicy, bind_policy, resolve
from agentbox.policy.rights.rights import build_rights, new_id

_MAX_LISTED: Final = 3
_INHERITED_LIMITS: Final = ("memory", "cpu", "pids", "fds", "tmp", "branch_disk")


def resolve_policy(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Raises SpawnError (stage profile, secrets)."""
    spec, table = draft.spec, draft.table
    resolved = _resolve_profile(spec, inputs.config)
    try:
        policy = bind_policy(resolved, _bindings(spec, table), inputs.config.egress_allow)
    except PatternError as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    grant_set = GrantSet(
        root=resolved.root,
        grants=tuple(Grant(right=right) for right in build_rights(policy)),
        limits=dict(vars(draft.ceiling)),
        budget=_budget(policy, table),
        workspace=spec.workspace,
    )
    if table is not None:
        _check_secrets(spec, table, inputs.config)
        grant_set = replace(
            grant_set,
            agent=spec.agent,
            provider=table.provider,
            preset=table.preset,
            approval_required=table.approval_required,
            children=table.children,
            skills=table.skills,
            mcp=table.mcp,
            env=table.env,
            workspace_dir=table.workspace_dir,
            restart=dict(vars(table.restart)),
            secrets=tuple(map(_secret_grant, table.secrets)),
        )
    return replace(draft, grant_set=grant_set)


def apply_constraints(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Expiry, counts and rates that a caller sets; they only restrict. A secret is matched by scope
    env and its name. Raises ValidationError for a constraint that matches no grant, and for a count
    or rate on a grant that the kernel enforces, which cannot count."""
    grants, secrets = draft.grant_set.grants, draft.grant_set.secrets
    for index, constraint in enumerate(draft.spec.constraints):
        matching = [grant for grant in grants if _matches(constraint, grant)]
        if not matching and not any(_matches(constraint, secret) for secret in secrets):
            raise _invalid(index, "matches no grant of this policy")
        if (constraint.uses is not None or constraint.rate is not None) and any(
            grant.is_kernel_enforced for grant in matching
        ):
            raise _invalid(
                index, "cannot limit the uses of a grant that the kernel enforces; use expires_s"
            )
        grants = tuple(_constrain(grant, constraint, inputs.now) for grant in grants)
        secrets = tuple(_constrain(secret, constraint, inputs.now) for secret in secrets)
    return replace(draft, grant_set=replace(draft.grant_set, grants=grants, secrets=secrets))


def restrict_to_parent(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Restrict grants and limits to those of the parent. Raises PermissionDenied for what the
    parent does not hold, and for an agent that may not start this child."""
    requester, parent = draft.requester, draft.parent
    if requester.is_agent and (
        parent is None or requester.principal != f"{PRINCIPAL}{parent.agent_id}"
    ):
        raise _denied(draft, "an agent may start only its own children")
    if parent is None:
        return draft
    if requester.is_agent and not delegation.may_start(
        parent.grant_set, draft.spec.agent, inputs.now
    ):
        raise _denied(draft, f"{parent.name} has no right to start it")
    try:
        grant_set = delegation.restrict_to_parent(draft.grant_set, parent.grant_set, inputs.now)
    except delegation.ExcessRights as error:
        listed, more = error.rights[:_MAX_LISTED], len(error.rights) - _MAX_LISTED
        suffix = f" and {more} more" if more > 0 else ""
        raise _denied(
            draft,
            f"it would have rights that {parent.name} does not have: {'; '.join(listed)}{suffix}",
        ) from error
    return replace(draft, limits=_cap_limits(draft.limits, parent.limits), grant_set=grant_set)


def _resolve_profile(spec: AgentSpec, config: HostConfig) -> ResolvedPolicy:
    try:
        resolved = resolve(spec.profile, config.policies)
    except (PolicyChainError, PatternError) as error:
        raise _unknown_profile(spec, config) from error
    if resolved.is_unrestricted and not config.dev:
        raise _unknown_profile(spec, config)
    return resolved


def _bindings(spec: AgentSpec, table: AgentPlan | None) -> Mapping[str, Sequence[str]]:
    """For an ad hoc program, `$ENV` is what its spec sets."""
    if table is None:
        variables = tuple(name for name in spec.env if is_pattern("env", name))
        return {"$PROVIDER": (), "$CHILDREN": (), "$ENV": variables, "$MCP": ()}
    return {
        "$PROVIDER": [table.provider] if table.provider else [],
        "$CHILDREN": table.children,
        "$ENV": table.env,
        "$MCP": server_patterns(table.mcp),
    }


def _budget(policy: Policy, table: AgentPlan | None) -> Budget | None:
    """None if the policy permits no model."""
    if not any(grant.scope == "llm" for grant in policy.permissions):
        return None
    values = dict(vars(ModelBudgetTable() if table is None else table.llm))
    max_cost = values.pop("max_cost")
    return Budget(**values, max_cost=to_micros(max_cost) if max_cost else None)


def _secret_grant(name: str) -> Grant:
    """The right is that of a variable, although the secret is provided as a file."""
    return Grant(
        right=Right(
            grant_id=new_id(), scope="env", mode="allow", operations=("read",), patterns=(name,)
        )
    )


def _check_secrets(spec: AgentSpec, table: AgentPlan, config: HostConfig) -> None:
    """Only the gateway holds the keys of model providers."""
    provider_keys = {provider.env_var for provider in config.providers.values()}
    for name in table.secrets:
        if name in provider_keys:
            raise SpawnError(
                f"cannot start {spec.name}: "
                f"the secret {name} is a provider key, which agents cannot receive",
                hint="set agents.<name>.provider instead",
                stage="secrets",
            )


def _matches(constraint: Constraint, grant: Grant) -> bool:
    right = grant.right
    return (
        right.mode == "allow"
        and right.scope == constraint.scope
        and (not constraint.operation or constraint.operation in right.operations)
        and (not constraint.pattern or constraint.pattern in right.patterns)
    )


def _constrain(grant: Grant, constraint: Constraint, now: float) -> Grant:
    if not _matches(constraint, grant):
        return grant
    end = None if constraint.expires_s is None else now + constraint.expires_s
    right = delegation.limit_right(grant.right, end, constraint.uses, constraint.rate)
    return replace(grant, right=right)


def _cap_limits(child: Limits, parent: Limits) -> Limits:
    """The wall clock is not inherited."""
    capped = {}
    for name in _INHERITED_LIMITS:
        child_limit, parent_limit = getattr(child, name), getattr(parent, name)
        if child_limit is not None and parent_limit is not None and child_limit > parent_limit:
            capped[name] = parent_limit
    return replace(child, **capped)


def _denied(draft: Draft, reason: str) -> PermissionDenied:
    return PermissionDenied(f"cannot start {draft.spec.name}: {reason}", scope="agents:write")


def _invalid(index: int, reason: str) -> ValidationError:
    pointer = f"/constraints/{index}"
    return ValidationError(
        f"invalid spec: {pointer} {reason}", errors=[{"pointer": pointer, "detail": reason}]
    )


def _unknown_profile(spec: AgentSpec, config: HostConfig) -> SpawnError:
    available = [
        name for name in (*profiles(), *config.policies) if config.dev or name != "unrestricted"
    ]
    return SpawnError(
        f"cannot start {spec.name}: unknown profile {spec.profile!r}; "
        f"available: {', '.join(available)}",
        stage="profile",
    )

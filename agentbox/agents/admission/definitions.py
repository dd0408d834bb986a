"""Agents defined in the manifest: `[agents.<name>]` overrides what callers without scope admin ask
for."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

from agentbox.adapters.orchestrator.checks import check_program
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.slot_errors import PermissionDenied, QuotaExceeded, SpawnError
from agentbox.manifest.tables.agents import AgentTable
from agentbox.plan.tables import AgentPlan, LimitsPlan
from agentbox.policy.rights.authorization import PRINCIPAL

DEFAULT_PROFILE: Final = AgentTable.profile
_MANIFEST_FIELDS: Final = ("argv", "profile", "cwd", "env", "restart", "workspace")


def resolve_spec(
    spec: AgentSpec, config: HostConfig, *, principal: str, admin: bool, single_run: bool
) -> AgentSpec:
    """Fill in every open field of the spec. With `agent`, the manifest defines command, directory,
    policy and restarts. An ad hoc program needs an argv and cannot be started by agents.
    `single_run`: a run whose restarts and stdin are its own. Raises ValidationError,
    PermissionDenied, SpawnError (stage agent)."""
    table = config.agents.get(spec.agent)
    by_agent = principal.startswith(PRINCIPAL)
    if table is None:
        if by_agent:
            raise _denied(
                spec, "an agent may start only agents defined in the manifest", scope="agents:write"
            )
        check_program(spec, config.agents)
        if (
            spec.workspace == "direct" and not admin
        ):  # files left there may run with the rights of whoever opens it next
            raise _denied(
                spec, "only an admin may start an agent directly in the workspace", scope="admin"
            )
        return replace(spec, profile=spec.profile or DEFAULT_PROFILE)
    if not table.enabled:
        raise SpawnError(
            f"cannot start {spec.name}: agents.{spec.agent}.enabled is false", stage="agent"
        )
    if (overridden := list(_overridden_fields(spec, table))) and not admin:
        raise _denied(
            spec,
            f"{', '.join(overridden)} must not differ from the manifest",
            scope="admin",
        )
    return replace(
        spec,
        argv=spec.argv or (*table.command, *table.args),
        profile=spec.profile or table.profile,
        workspace=_workspace(spec, table),
        cwd=spec.cwd or table.workspace_dir,
        restart=spec.restart if single_run else _restart(spec, table),
        stdin="pipe" if table.protocol == "stdio" and not single_run else spec.stdin,
    )


def check_instances(name: str, entries: Iterable[AgentRecord], config: HostConfig) -> None:
    """`name` is the key in [agents]; "" has no limit here. Raises QuotaExceeded."""
    if not name:
        return
    running = sum(not entry.over and entry.grant_set.agent == name for entry in entries)
    max_instances = config.agents[name].max_instances
    if running >= max_instances:
        raise QuotaExceeded(
            f"cannot start another {name}: "
            f"{running} of at most {max_instances} instances are running",
            hint="wait for an instance to end, or terminate one",
            limit="max_instances",
            observed=running,
            cap=max_instances,
            config_path=f"agents.{name}.max_instances",
        )


def limits_of(spec: AgentSpec, config: HostConfig) -> LimitsPlan:
    """Default and maximum of each limit: the agent's table, else [limits]."""
    table = config.agents.get(spec.agent)
    return config.limits if table is None else table.limits


def _overridden_fields(spec: AgentSpec, table: AgentPlan) -> Iterator[str]:
    """Fields of the spec that differ from the manifest."""
    defaults = {field.name: field.default for field in fields(AgentSpec)} | {"env": {}}
    manifest_values = {
        "argv": (*table.command, *table.args),
        "profile": table.profile,
        "cwd": table.workspace_dir,
        "restart": table.restart.policy,
        "workspace": table.workspace,
    }
    for name in _MANIFEST_FIELDS:
        if getattr(spec, name) not in (defaults[name], manifest_values.get(name, defaults[name])):
            yield name


def _restart(spec: AgentSpec, table: AgentPlan) -> Any:
    return table.restart.policy if spec.restart == "never" else spec.restart


def _workspace(spec: AgentSpec, table: AgentPlan) -> Any:
    return table.workspace if spec.workspace == "branch" else spec.workspace


def _denied(spec: AgentSpec, reason: str, *, scope: str) -> PermissionDenied:
    return PermissionDenied(f"cannot start {spec.name}: {reason}", scope=scope)

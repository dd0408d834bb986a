"""Agents defined in the manifest: `[agents.<name>]` overrides what callers without scope admin ask
for."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from agentbox.adapters.orchestrator.spec_checks import check_program
from agentbox.agents.admission.draft import TASK_PREFIX, AdmissionInputs, Draft
from agentbox.agents.admission.services import server_definition
from agentbox.contracts.orchestrator import AgentKind, AgentSpec
from agentbox.core.slot_errors import PermissionDenied, SpawnError
from agentbox.manifest.tables.agents import AgentTable
from agentbox.plan.names import MCP_HOST
from agentbox.plan.tables import AgentPlan

DEFAULT_PROFILE: Final = AgentTable.profile
_MANIFEST_FIELDS: Final = ("argv", "profile", "cwd", "env", "restart", "workspace")


def resolve_definition(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Fill in every open field of the spec. With `agent`, the manifest defines command, directory,
    policy and restarts; a single run has its own restarts and stdin. An ad hoc program needs an
    argv and cannot be started by agents. Raises ValidationError, PermissionDenied, SpawnError
    (stage agent)."""
    table = _find_table(draft, inputs)
    if table is None:
        return replace(draft, spec=_ad_hoc_spec(draft, inputs))
    _check_protocol(draft.spec, table, inputs.kind)
    single_run = inputs.once or draft.requester.request_id.startswith(TASK_PREFIX)
    spec = _spec_of_table(draft, table, single_run=single_run)
    if inputs.kind != "agent":  # its programs are started in it
        spec = replace(spec, argv=(), stdin="null", restart="never")
    return replace(draft, spec=spec, table=table, ceiling=table.limits)


def _find_table(draft: Draft, inputs: AdmissionInputs) -> AgentPlan | None:
    """None for an ad hoc program. mcp-host starts servers only."""
    spec, config = draft.spec, inputs.config
    if draft.requester.program != MCP_HOST:
        return config.agents.get(spec.agent)
    if (table := server_definition(spec.agent, config.mcp_servers)) is None:
        raise SpawnError(
            f"cannot start {spec.name}: [mcp.servers] has no such stdio server", stage="agent"
        )
    return table


def _ad_hoc_spec(draft: Draft, inputs: AdmissionInputs) -> AgentSpec:
    spec, requester = draft.spec, draft.requester
    if requester.is_agent:
        raise _denied(
            spec, "an agent may start only agents defined in the manifest", scope="agents:write"
        )
    if inputs.kind == "agent":
        check_program(spec, inputs.config.agents)
    if (
        spec.workspace == "direct" and not requester.admin
    ):  # files left there may run with the rights of whoever opens it next
        raise _denied(
            spec, "only an admin may start an agent directly in the workspace", scope="admin"
        )
    return replace(spec, profile=spec.profile or DEFAULT_PROFILE)


def _spec_of_table(draft: Draft, table: AgentPlan, *, single_run: bool) -> AgentSpec:
    spec = draft.spec
    if not table.enabled:
        raise SpawnError(
            f"cannot start {spec.name}: agents.{spec.agent}.enabled is false", stage="agent"
        )
    if (overridden := list(_overridden_fields(spec, table))) and not draft.requester.admin:
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


def _check_protocol(spec: AgentSpec, table: AgentPlan, kind: AgentKind) -> None:
    """An agent that speaks ACP runs in sessions, and no other one does."""
    if (table.protocol == "acp") != (kind == "session"):
        reason = (
            f'agents.{spec.agent}.protocol is not "acp"'
            if kind == "session"
            else "it speaks ACP, and runs in sessions"
        )
        raise SpawnError(
            f"cannot start {spec.name}: {reason}",
            hint="agentbox session new" if kind != "session" else "name another agent",
            stage="agent",
        )


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

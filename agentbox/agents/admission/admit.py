"""Admits an agent: resolves its spec, limits and grants. Starts and stores nothing."""

import os
import resource
from dataclasses import dataclass, replace

from agentbox.adapters.orchestrator.checks import check_form
from agentbox.agents.admission import definitions, policy
from agentbox.agents.admission.launch_spec import effective_limits
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.states.state import StoredState
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.core.slot_errors import NotFound, QuotaExceeded
from agentbox.policy.limits.registry import FREE_RESERVE
from agentbox.policy.limits.reserve import FILES, FILES_PER_AGENT, TASKS_PER_AGENT

TASK_PREFIX = (
    "task:"  # prefix of the request ids of tasks, whose runs are single whatever the manifest says
)


@dataclass(frozen=True, kw_only=True)
class Requester:
    """Who requests an agent, under which id, and whether the limits of the manifest apply. For a
    task, `submitter` is who submitted it and `state_id` the state that all of its attempts use.
    `session_id` and `trace_id` belong to the call; "" means none yet."""

    principal: str
    request_id: str
    admin: bool = False
    submitter: str = ""
    submitter_admin: bool = False
    state_id: str = ""
    session_id: str = ""
    trace_id: str = ""


def admit(
    host: HostState, spec: AgentSpec, requester: Requester, *, once: bool
) -> tuple[AgentRecord, StoredState]:
    """Return the agent and the state it uses. Raises the slot errors for an agent that may not be
    started, or not now."""
    check_form(spec)
    config = host.config = host.live_config.apply(host.config)
    single_run = once or requester.request_id.startswith(TASK_PREFIX)
    spec = definitions.resolve_spec(
        spec, config, principal=requester.principal, admin=requester.admin, single_run=single_run
    )
    parent = _parent(host, spec)
    limits = effective_limits(
        spec.limits, definitions.limits_of(spec, config), once=once, admin=requester.admin
    )
    grant_set = policy.inherit_grants(
        policy.build_grant_set(spec, config), spec, parent, requester.principal
    )
    _check_capacity(host)
    definitions.check_instances(grant_set.agent, host.entries.values(), config)
    agent_id = uuid7()
    state = host.states.assign(
        spec,
        config.agents.get(spec.agent),
        agent_id,
        owner=requester.submitter or requester.principal,
        admin=requester.submitter_admin if requester.submitter else requester.admin,
        task_state_id=requester.state_id,
    )
    entry = AgentRecord(
        agent_id=agent_id,
        state_id=state.state_id,
        spec=spec,
        session_id=requester.session_id if parent is None else parent.session_id,
        trace_id=(requester.trace_id or new_trace_id()) if parent is None else parent.trace_id,
        limits=limits if parent is None else _cap_limits(limits, parent.limits),
        principal=requester.principal,
        request_id=requester.request_id,
        depth=0 if parent is None else parent.depth + 1,
        once=once,
        grant_set=grant_set,
    )
    return entry, state


def _parent(host: HostState, spec: AgentSpec) -> AgentRecord | None:
    if spec.parent_id is None:
        return None
    parent = host.entries.get(spec.parent_id)
    if parent is None:
        raise NotFound(f"cannot find agent {spec.parent_id}", resource="agent", id=spec.parent_id)
    policy.check_parent(parent)
    max_depth = host.config.max_depth
    if parent.depth + 1 > max_depth:
        raise _quota_exceeded("max_depth", parent.depth + 1, max_depth)
    return parent


def _check_capacity(host: HostState) -> None:
    running = sum(not entry.over for entry in host.entries.values())
    if running >= host.config.max_agents:
        raise _quota_exceeded("max_agents", running, host.config.max_agents)
    if (max_tasks := host.config.box_tasks) and running >= max_tasks // TASKS_PER_AGENT:
        raise QuotaExceeded(
            "cannot start another agent: resources.pids allows at most "
            f"{max_tasks // TASKS_PER_AGENT} agents",
            hint="wait for an agent to end, or raise resources.pids in agentbox.toml",
            limit="box_tasks",
            observed=running,
            cap=max_tasks // TASKS_PER_AGENT,
            config_path="resources.pids",
        )
    capacity = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES) // FILES_PER_AGENT
    if running >= capacity:
        raise QuotaExceeded(
            "cannot start another agent: resources.nofile allows at most "
            f"{max(0, capacity)} agents",
            hint="wait for an agent to end, or raise resources.nofile in agentbox.toml",
            limit="nofile",
            observed=running,
            cap=max(0, capacity),
            config_path="resources.nofile",
        )
    _check_disk(host.config.paths.state)


def _check_disk(directory: os.PathLike[str]) -> None:
    """Reserve part of the disk shared by agents and box for the box; a quarter of a small file
    system."""
    stats = os.statvfs(directory)
    free, reserve = (
        stats.f_bavail * stats.f_frsize,
        min(FREE_RESERVE, stats.f_blocks * stats.f_frsize // 4),
    )
    if free < reserve:
        raise QuotaExceeded(
            f"cannot start another agent: the disk has {free >> 20} MiB free, "
            f"but {reserve >> 20} MiB are reserved for the box",
            hint="free space on the state volume",
            limit="free_reserve",
            observed=free,
            cap=reserve,
            config_path="",
        )


def _cap_limits(child: Limits, parent: Limits) -> Limits:
    """Cap each limit at the parent's. The wall clock is not inherited."""
    capped = {}
    for name in ("memory", "cpu", "pids", "fds", "tmp", "branch_disk"):
        child_limit, parent_limit = getattr(child, name), getattr(parent, name)
        if child_limit is not None and parent_limit is not None and child_limit > parent_limit:
            capped[name] = parent_limit
    return replace(child, **capped)


def _quota_exceeded(key: str, observed: int, cap: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"cannot start another agent: {key} is {cap}",
        hint="wait for an agent to end, or raise it in agentbox.toml",
        limit=key,
        observed=observed,
        cap=cap,
        config_path=f"adapters.orchestrator.{key}",
    )

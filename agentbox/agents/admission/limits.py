"""Limits of a new agent, and of all agents of this host together."""

from dataclasses import fields, replace

from agentbox.agents.admission.draft import AdmissionInputs, Draft, HostUsage
from agentbox.contracts.orchestrator import Limits
from agentbox.core.slot_errors import QuotaExceeded
from agentbox.policy.limits.registry import FREE_RESERVE
from agentbox.policy.limits.reserve import FILES, FILES_PER_AGENT, TASKS_PER_AGENT

_LIMIT_NAMES = tuple(field.name for field in fields(Limits))


def effective_limits(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Every limit set: the requested value, else the ceiling. Exceeding one requires scope admin,
    else QuotaExceeded."""
    wall = "run_wall_seconds" if inputs.once else "agent_wall_seconds"
    effective = {}
    for name in _LIMIT_NAMES:
        key = wall if name == "wall_seconds" else name
        value, ceiling = getattr(draft.spec.limits, name), getattr(draft.ceiling, key)
        is_excess = value is not None and (value > ceiling or (value == 0 and key == wall))
        if is_excess and ceiling and not draft.requester.admin:
            raise QuotaExceeded(
                f"cannot raise limits.{key} to {value:g}: the maximum is {ceiling:g}",
                hint="lower it, or use an admin token",
                limit=name,
                observed=value,
                cap=ceiling,
                config_path=f"limits.{key}",
            )
        effective[name] = ceiling if value is None else value
    return replace(draft, limits=Limits(**effective))


def check_capacity(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Raises QuotaExceeded if the host has no room for another agent, or its table none for another
    instance."""
    config, usage = inputs.config, inputs.usage
    running = sum(usage.running.values())
    if running >= config.max_agents:
        raise max_exceeded("max_agents", running, config.max_agents)
    if config.box_tasks and running >= (capacity := config.box_tasks // TASKS_PER_AGENT):
        raise _box_is_full("pids", "box_tasks", running, capacity)
    max_exec = config.sandboxes.max_exec
    capacity = (usage.open_files - FILES) // FILES_PER_AGENT
    further = max_exec if inputs.kind != "agent" else 0  # each program has files like an agent
    if running + usage.sandboxes * max_exec + further >= capacity:
        raise _box_is_full("nofile", "nofile", running, max(0, capacity))
    if inputs.kind != "agent" and usage.sandboxes >= config.sandboxes.max:
        raise QuotaExceeded(
            f"cannot create another sandbox: sandboxes.max is {config.sandboxes.max}",
            hint="end one, or raise it in agentbox.toml",
            limit="max_sandboxes",
            observed=usage.sandboxes,
            cap=config.sandboxes.max,
            config_path="sandboxes.max",
        )
    _check_disk(usage)
    instances = usage.running.get(draft.spec.agent, 0)
    is_counted = draft.table is not None and inputs.kind == "agent"  # acp.max_sessions: sessions
    if draft.table is not None and is_counted and instances >= draft.table.max_instances:
        raise _too_many_instances(draft.spec.agent, instances, draft.table.max_instances)
    return draft


def max_exceeded(key: str, observed: int, cap: int) -> QuotaExceeded:
    """For a maximum in the options of the slot."""
    return QuotaExceeded(
        f"cannot start another agent: {key} is {cap}",
        hint="wait for an agent to end, or raise it in agentbox.toml",
        limit=key,
        observed=observed,
        cap=cap,
        config_path=f"adapters.orchestrator.{key}",
    )


def _check_disk(usage: HostUsage) -> None:
    """Reserve part of the disk shared by agents and box for the box; a quarter of a small file
    system."""
    reserve = min(FREE_RESERVE, usage.disk_size // 4)
    if usage.disk_free < reserve:
        raise QuotaExceeded(
            f"cannot start another agent: the disk has {usage.disk_free >> 20} MiB free, "
            f"but {reserve >> 20} MiB are reserved for the box",
            hint="free space on the state volume",
            limit="free_reserve",
            observed=usage.disk_free,
            cap=reserve,
            config_path="",
        )


def _box_is_full(resource: str, limit: str, running: int, capacity: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"cannot start another agent: resources.{resource} allows at most {capacity} agents",
        hint=f"wait for an agent to end, or raise resources.{resource} in agentbox.toml",
        limit=limit,
        observed=running,
        cap=capacity,
        config_path=f"resources.{resource}",
    )


def _too_many_instances(name: str, running: int, maximum: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"cannot start another {name}: {running} of at most {maximum} instances are running",
        hint="wait for an instance to end, or terminate one",
        limit="max_instances",
        observed=running,
        cap=maximum,
        config_path=f"agents.{name}.max_instances",
    )

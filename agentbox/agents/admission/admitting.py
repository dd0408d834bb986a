"""From a request to the agent that it makes: settled, bounded, narrowed. Nothing runs yet and nothing is stored."""

import os
import resource
from dataclasses import dataclass, replace

from agentbox.adapters.orchestrator.checks import check_form
from agentbox.agents.admission import definitions, policy
from agentbox.agents.admission.admission import effective_limits
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.states.state import State
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.core.slot_errors import NotFound, QuotaExceeded
from agentbox.policy.limits.registry import FREE_RESERVE
from agentbox.policy.limits.reserve import FILES, FILES_OF_ONE, TASKS_OF_ONE

TASK = "task:"  # in front of the request id of a task's run, which is one life whatever a table says


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks for an agent, under which id, and whether the manifest's limits bind them. Of a task `submitter` is who asked for
    it, and `state_id` the state that all of its attempts use. `session_id` and `trace_id` are of the call; "" = none yet."""

    principal: str
    request_id: str
    admin: bool = False
    submitter: str = ""
    submitter_admin: bool = False
    state_id: str = ""
    session_id: str = ""
    trace_id: str = ""


def admitted(host: Host, spec: AgentSpec, asker: Asker, *, once: bool) -> tuple[Entry, State]:
    """The agent, and the state that it uses. Raises the errors of the slot for what may not be started, or not now."""
    check_form(spec)
    config = host.config = host.live.taken_over(host.config)
    one_life = once or asker.request_id.startswith(TASK)
    spec = definitions.settled(spec, config, principal=asker.principal, admin=asker.admin, one_life=one_life)
    parent = _parent(host, spec)
    limits = effective_limits(spec.limits, definitions.limits_of(spec, config), once=once, admin=asker.admin)
    holding = policy.below(policy.holding_of(spec, config), spec, parent, asker.principal)
    _check_room(host)
    definitions.check_instances(holding.agent, host.entries.values(), config)
    agent_id = uuid7()
    state = host.states.of_agent(
        spec, config.agents.get(spec.agent), agent_id, owner=asker.submitter or asker.principal,
        admin=asker.submitter_admin if asker.submitter else asker.admin, given=asker.state_id,
    )  # fmt: skip
    entry = Entry(
        agent_id=agent_id, state_id=state.state_id, spec=spec,
        session_id=asker.session_id if parent is None else parent.session_id,
        trace_id=(asker.trace_id or new_trace_id()) if parent is None else parent.trace_id,
        limits=limits if parent is None else _within(limits, parent.limits),
        principal=asker.principal, request_id=asker.request_id, depth=0 if parent is None else parent.depth + 1, once=once,
        holding=holding,
    )  # fmt: skip
    return entry, state


def _parent(host: Host, spec: AgentSpec) -> Entry | None:
    if spec.parent_id is None:
        return None
    parent = host.entries.get(spec.parent_id)
    if parent is None:
        raise NotFound(f"cannot find agent {spec.parent_id}", resource="agent", id=spec.parent_id)
    policy.check_parent(parent)
    most = host.config.max_depth
    if parent.depth + 1 > most:
        raise _quota("max_depth", parent.depth + 1, most)
    return parent


def _check_room(host: Host) -> None:
    living = sum(not one.over for one in host.entries.values())
    if living >= host.config.max_agents:
        raise _quota("max_agents", living, host.config.max_agents)
    if (most := host.config.box_tasks) and living >= most // TASKS_OF_ONE:
        raise QuotaExceeded(
            f"cannot start another agent: the processes that this box can spare are enough for {most // TASKS_OF_ONE}",
            hint="wait for one to end, or raise resources.pids in agentbox.toml",
            limit="box_tasks", observed=living, cap=most // TASKS_OF_ONE, config_path="resources.pids",
        )  # fmt: skip
    room = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES) // FILES_OF_ONE
    if living >= room:
        raise QuotaExceeded(
            f"cannot start another agent: the box's open files are enough for {max(0, room)}",
            hint="wait for one to end, or raise resources.nofile in agentbox.toml",
            limit="nofile", observed=living, cap=max(0, room), config_path="resources.nofile",
        )  # fmt: skip
    _check_disk(host.config.paths.state)


def _check_disk(folder: os.PathLike[str]) -> None:
    """What agents leave to the box of the disk where both write; in a small file system a quarter of it."""
    now = os.statvfs(folder)
    free, reserve = now.f_bavail * now.f_frsize, min(FREE_RESERVE, now.f_blocks * now.f_frsize // 4)
    if free < reserve:
        raise QuotaExceeded(
            f"cannot start another agent: the disk has {free >> 20} MiB free, and agents leave the box {reserve >> 20} MiB",
            hint="free space on the state volume", limit="free_reserve", observed=free, cap=reserve, config_path="",
        )  # fmt: skip


def _within(child: Limits, parent: Limits) -> Limits:
    """No limit above its parent's. A wall clock is each agent's own."""
    changed = {}
    for name in ("memory", "cpu", "pids", "fds", "tmp", "branch_disk"):
        mine, its = getattr(child, name), getattr(parent, name)
        if mine is not None and its is not None and mine > its:
            changed[name] = its
    return replace(child, **changed)


def _quota(key: str, observed: int, cap: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"cannot start another agent: {key} is {cap}", hint="wait for one to end, or raise it in agentbox.toml",
        limit=key, observed=observed, cap=cap, config_path=f"adapters.orchestrator.{key}",
    )  # fmt: skip

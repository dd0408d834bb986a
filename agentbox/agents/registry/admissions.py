"""Gathers what admission decides on, and makes the record of the agent that it admits."""

import os
import resource
import time
from collections import Counter

from agentbox.agents.admission.admit import Requester, admit
from agentbox.agents.admission.draft import AdmissionInputs, HostUsage, Parent
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.branch_owner import find_branch_owner
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.states.state import StoredState
from agentbox.contracts.orchestrator import AgentKind, AgentSpec
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.plan.names import MCP_HOST
from agentbox.policy.rights.renewal import without_revoked


def admit_agent(
    host: HostState, spec: AgentSpec, requester: Requester, *, once: bool, kind: AgentKind = "agent"
) -> tuple[AgentRecord, StoredState]:
    """Return the agent and the state it uses, whose name is reserved from now on. Raises the slot
    errors for an agent that may not be started, or not now."""
    draft = admit(spec, requester, gather_inputs(host, spec, once=once, kind=kind))
    branch_of = find_branch_owner(host, draft) if requester.program == MCP_HOST else None
    agent_id, parent = uuid7(), draft.parent
    state = host.states.assign(
        draft.spec,
        draft.table,
        agent_id,
        owner=requester.submitter or requester.principal,
        admin=requester.submitter_admin if requester.submitter else requester.admin,
        task_state_id=requester.state_id,
    )
    entry = AgentRecord(
        agent_id=agent_id,
        state_id=state.state_id,
        spec=draft.spec,
        session_id=requester.session_id if parent is None else parent.session_id,
        trace_id=(requester.trace_id or new_trace_id()) if parent is None else parent.trace_id,
        limits=draft.limits,
        principal=requester.principal,
        request_id=requester.request_id,
        program=requester.program,
        depth=0 if parent is None else parent.depth + 1,
        once=once,
        kind=kind,
        branch_of=branch_of,
        grant_set=draft.grant_set,
    )
    return entry, state


def admit_again(host: HostState, entry: AgentRecord, requester: Requester) -> None:
    """Give a suspended agent the rights and limits of now, without what was revoked. Raises as
    `admit_agent`, and changes nothing then."""
    spec = AgentSpec(
        name=entry.spec.name,
        agent=entry.grant_set.agent,
        env=entry.spec.env,
        labels=entry.spec.labels,
    )
    draft = admit(spec, requester, gather_inputs(host, spec, once=False, kind=entry.kind))
    entry.spec, entry.limits = draft.spec, draft.limits
    entry.grant_set = without_revoked(draft.grant_set, entry.grant_set)


def gather_inputs(
    host: HostState, spec: AgentSpec, *, once: bool, kind: AgentKind = "agent"
) -> AdmissionInputs:
    """The host as of now, with the plan that was applied last."""
    host.config = host.live_config.apply(host.config)
    parent = None if spec.parent_id is None else host.entries.get(spec.parent_id)
    return AdmissionInputs(
        config=host.config,
        now=time.time(),
        once=once,
        kind=kind,
        parent=None if parent is None else _parent(parent),
        usage=_usage(host),
    )


def _parent(entry: AgentRecord) -> Parent:
    return Parent(
        agent_id=entry.agent_id,
        name=entry.spec.name,
        state=entry.state,
        over=entry.over,
        depth=entry.depth,
        limits=entry.limits,
        grant_set=entry.grant_set,
        session_id=entry.session_id,
        trace_id=entry.trace_id,
    )


def _usage(host: HostState) -> HostUsage:
    disk = os.statvfs(host.config.paths.state)
    running = [
        entry for entry in host.entries.values() if not entry.over and entry.state != "suspended"
    ]
    return HostUsage(
        running=Counter(entry.grant_set.agent for entry in running),
        sandboxes=sum(entry.kind != "agent" for entry in running),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        disk_free=disk.f_bavail * disk.f_frsize,
        disk_size=disk.f_blocks * disk.f_frsize,
    )

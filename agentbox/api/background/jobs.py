"""The background work of a box, as its plan demands."""

import asyncio
from collections.abc import Mapping
from functools import partial

from agentbox.adapters.events.search.follower import follow
from agentbox.adapters.events.search.index import EventIndex
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.background.agent_events import journal_agent_events
from agentbox.api.background.autostart import autostart, autostart_names
from agentbox.api.background.background_work import Job
from agentbox.api.background.denials import follow_denials
from agentbox.api.background.mcp_servers import follow_mcp_host, runs_mcp_host
from agentbox.api.background.sandbox_canaries import SandboxCanaryWatcher
from agentbox.api.background.session_events import journal_session_events
from agentbox.api.background.state_sweep import sweep
from agentbox.api.hold import Hold
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.box.readiness.box_requirements import proves_sandbox
from agentbox.contracts.session_host import SessionHost
from agentbox.core.paths import Paths


def make_jobs(
    plans: PlanSource,
    paths: Paths,
    boot_id: str,
    slots: Slots,
    metrics: BoxMetrics,
    canaries: SandboxCanaryWatcher,
    session_host: SessionHost,
    ready_once: asyncio.Event,
    index: EventIndex,
    hold: Hold,
) -> Mapping[str, Job]:
    """By the names under which failures are logged. `ready_once` is set when the box is ready for
    the first time; work that starts agents or removes data waits for the end of `hold`.
    """
    plan = plans.current
    jobs: dict[str, Job] = {
        "record of agents": partial(
            journal_agent_events, plan, paths, slots, metrics.limit_counters
        ),
        "denial counters": partial(follow_denials, slots, metrics.denials),
    }
    if runs_mcp_host(plan):
        jobs["MCP servers"] = partial(follow_mcp_host, plans, paths, slots, metrics.mcp_drift)
    if plan.slots["events"].use != "off":
        jobs["index of events"] = partial(follow, index, slots.events)
    if autostart_names(plan):
        jobs["autostart"] = hold.after(
            partial(autostart, plans, boot_id, slots.orchestrator, ready_once)
        )
    if plan.slots["orchestrator"].use == "local-process":
        jobs["state sweep"] = hold.after(
            partial(sweep, slots, plans, ready_once if boot_id else None)
        )
    speaks_acp = any(agent.protocol == "acp" for agent in plan.agents.values())
    if speaks_acp and plan.slots["events"].use != "off":
        jobs["record of sessions"] = partial(journal_session_events, plan.name, slots, session_host)
    if proves_sandbox(plan):
        jobs["canary reports"] = canaries.follow
    return jobs

"""E104: agents may use what the control plane needs."""

from collections.abc import Iterator

from agentbox.manifest.features.tmpfs import baseline_mounts, total_bytes
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.limits.reserve import (
    FILES,
    FILES_PER_AGENT,
    MEMORY,
    TASKS_PER_AGENT,
    THREADS_PER_PROCESS,
    required_tasks,
)

CODE, SINCE = "E104", "0.1"
TITLE = "box without a reserve for its control plane"
REASON = """\
A part of the box's processes, threads, open files and memory is reserved for its control
plane. The remainder must suffice for the maximum number of agents, and for one of them at its
limits; otherwise agents would be denied or ended below their limits."""
READS = (
    "adapters.orchestrator.use",
    "adapters.orchestrator.max_agents",
    "limits.memory",
    "limits.pids",
    "resources.memory",
    "resources.nofile",
    "resources.pids",
    "resources.tmp_size",
    "resources.log_size",
)
BAD = """
[resources]
pids = 1024
"""
GOOD = """
[resources]
pids = 1024
[adapters.orchestrator]
max_agents = 50
[limits]
pids = 64
"""

_MIB = 1 << 20


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per resource, with its sum."""
    if context["adapters.orchestrator.use"] != "local-process":
        return
    agents, pids = context["adapters.orchestrator.max_agents"], context["limits.pids"]
    if (required := required_tasks(agents, pids)) > context["resources.pids"]:
        parts = (
            f"{agents} agents of at least {TASKS_PER_AGENT}, "
            f"one of {pids} times {THREADS_PER_PROCESS} threads"
        )
        yield context.finding(
            "resources.pids",
            message=f"{parts} and the reserve of the box need {required} processes and threads, "
            f"and it has {context['resources.pids']}",
            remedy=f"Set resources.pids to at least {required}, or lower limits.pids or "
            "adapters.orchestrator.max_agents.",
            related=("limits.pids", "adapters.orchestrator.max_agents"),
        )
    if (required := FILES + FILES_PER_AGENT * agents) > context["resources.nofile"]:
        yield context.finding(
            "resources.nofile",
            message=f"{agents} agents and the reserve of the box need {required} open files, and "
            f"it has {context['resources.nofile']}",
            remedy=f"Set resources.nofile to at least {required}, or lower "
            "adapters.orchestrator.max_agents.",
            related=("adapters.orchestrator.max_agents",),
        )
    limit, box_memory = context["limits.memory"], context["resources.memory"]
    file_systems = total_bytes(
        baseline_mounts(context["resources.tmp_size"], context["resources.log_size"])
    )
    if limit <= box_memory < (required := MEMORY + file_systems + limit):
        yield context.finding(
            "resources.memory",
            message=f"one agent of {limit}, control plane {MEMORY // _MIB} MiB "
            "and memory file systems "
            f"{file_systems // _MIB} MiB do not fit in {box_memory}",
            remedy=f'Set resources.memory to at least "{-(-required // _MIB)}MiB", or lower '
            "limits.memory.",
            related=("limits.memory",),
        )

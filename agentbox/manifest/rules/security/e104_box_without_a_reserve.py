"""E104: agents may take what the box needs for its control plane."""

from collections.abc import Iterator

from agentbox.manifest.features.tmpfs import baseline, total_bytes
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.policy.limits.reserve import FILES, FILES_OF_ONE, MEMORY, TASKS_OF_ONE, THREADS_A_PROCESS, needed_tasks

CODE, SINCE = "E104", "0.1"
TITLE = "box without a reserve for its control plane"
WHY = """A part of the box's processes, threads, open files and memory is for its control plane, and no sum of agents takes
it. What is left must hold as many agents as may live at once, and one of them at its limits; else agents would be refused,
or ended, below the limits that the manifest promises them."""
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


def check(view: View) -> Iterator[Finding]:
    """At most one finding a resource, with its sum."""
    if view["adapters.orchestrator.use"] != "local-process":
        return
    agents, pids = view["adapters.orchestrator.max_agents"], view["limits.pids"]
    if (needed := needed_tasks(agents, pids)) > view["resources.pids"]:
        parts = f"{agents} agents of at least {TASKS_OF_ONE}, one of {pids} times {THREADS_A_PROCESS} threads"
        yield view.finding(
            "resources.pids",
            message=f"{parts} and the reserve of the box need {needed} processes and threads, and it has {view['resources.pids']}",
            remedy=f"Set resources.pids to at least {needed}, or lower limits.pids or adapters.orchestrator.max_agents.",
            related=("limits.pids", "adapters.orchestrator.max_agents"),
        )
    if (needed := FILES + FILES_OF_ONE * agents) > view["resources.nofile"]:
        yield view.finding(
            "resources.nofile",
            message=f"{agents} agents and the reserve of the box need {needed} open files, and it has {view['resources.nofile']}",
            remedy=f"Set resources.nofile to at least {needed}, or lower adapters.orchestrator.max_agents.",
            related=("adapters.orchestrator.max_agents",),
        )
    limit, whole = view["limits.memory"].bytes, view["resources.memory"]
    file_systems = total_bytes(baseline(view["resources.tmp_size"], view["resources.log_size"]))
    if limit <= whole.bytes < (needed := MEMORY + file_systems + limit):
        yield view.finding(
            "resources.memory",
            message=f"one agent of {view['limits.memory']}, control plane {MEMORY // _MIB} MiB and memory file systems "
            f"{file_systems // _MIB} MiB do not fit in {whole}",
            remedy=f'Set resources.memory to at least "{-(-needed // _MIB)}MiB", or lower limits.memory.',
            related=("limits.memory",),
        )

"""W604: agents, while the slot that starts them is off."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import enabled_agents
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "W604", "0.1"
TITLE = "agents, but nothing starts them"
REASON = "Only the orchestrator slot starts agents. While it is off they can never start."
READS = ("adapters.orchestrator.use", "agents", "agents.*.enabled")
BAD = """
[adapters]
orchestrator.use = "off"
[agents.builder]
command = ["builder"]
"""
GOOD = """
[adapters]
orchestrator.use = "local-process"
[agents.builder]
command = ["builder"]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["adapters.orchestrator.use"] == "off" and (agents := enabled_agents(context)):
        yield context.finding(
            "adapters.orchestrator.use",
            message=f"the orchestrator is off, so nothing can start {', '.join(agents)}",
            remedy='Set adapters.orchestrator.use = "local-process", or enabled = false for each '
            "of these agents.",
            related=tuple(f"agents.{name}" for name in agents),
        )

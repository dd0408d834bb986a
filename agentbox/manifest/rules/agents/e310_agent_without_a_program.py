"""E310: an agent without a command, and no preset that has one."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E310", "0.1"
TITLE = "agent without a program"
REASON = """\
An agent is a program. Only one that speaks ACP may leave its command out: a preset has that of its
CLI."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.command",
    "agents.*.preset",
    "agents.*.protocol",
)
BAD = """
[agents.coder]
profile = "sandboxed"
"""
GOOD = """
[providers.models]
enabled = true
kind = "anthropic"
env_var = "MODEL_KEY"
[agents.coder]
protocol = "acp"
preset = "claude-code"
provider = "models"
"""
EACH = "agents"


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per agent."""
    if not context["agents.*.enabled"] or context["agents.*.command"]:
        return
    if context["agents.*.protocol"] == "acp" and context["agents.*.preset"]:
        return
    yield context.finding(
        "agents.*.command",
        message=f"{context.entry} has no command",
        remedy=f'Set {context.path("agents.*.command")}, as in ["claude", "-p"]; with protocol = '
        '"acp" a preset has one.',
    )

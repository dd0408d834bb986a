"""E305: an agent without confinement in a box that is not for development."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import is_resolvable, policy_chain
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.profiles import UNRESTRICTED

CODE, SINCE = "E305", "0.1"
TITLE = "unrestricted outside development"
REASON = """The profile `unrestricted` leaves an agent no confinement beyond the box. Only a
development box may use it."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "policies",
    "policies.*.base",
    "meta.dev",
)
BAD = """
[agents.builder]
command = ["builder"]
profile = "unrestricted"
"""
GOOD = """
[agents.builder]
command = ["builder"]
profile = "unrestricted"
[meta]
dev = true
"""
EACH = "agents"


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per agent."""
    if not context["agents.*.enabled"] or context["meta.dev"]:
        return
    profile = context["agents.*.profile"]
    if is_resolvable(context, profile) and policy_chain(context, profile)[0] == UNRESTRICTED:
        yield context.finding(
            "agents.*.profile",
            message=f"the profile {profile} leaves {context.entry} no confinement beyond the box",
            remedy=f'Set agents.{context.entry}.profile = "standard", or meta.dev = true for a '
            "development box.",
            related=("meta.dev",),
        )

"""E305: an agent without confinement in a box that is not for development."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import chain_of, resolves
from agentbox.manifest.rules.context import View
from agentbox.policy.profiles import UNRESTRICTED

CODE, SINCE = "E305", "0.1"
TITLE = "unrestricted outside development"
WHY = """The profile `unrestricted` leaves an agent no confinement beyond the box. Only a box that says it is for development
may have one."""
READS = ("agents", "agents.*.enabled", "agents.*.profile", "policies", "policies.*.base", "meta.dev")
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


def check(view: View) -> Iterator[Finding]:
    """At most one finding an agent."""
    if not view["agents.*.enabled"] or view["meta.dev"]:
        return
    profile = view["agents.*.profile"]
    if resolves(view, profile) and chain_of(view, profile)[0] == UNRESTRICTED:
        yield view.finding(
            "agents.*.profile",
            message=f"the profile {profile} leaves {view.entry} no confinement beyond the box",
            remedy=f'Set agents.{view.entry}.profile = "standard", or meta.dev = true knowingly.',
            related=("meta.dev",),
        )

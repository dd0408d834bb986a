"""E302: a policy that takes away what the agent's own table gives."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import bound_policy, fits
from agentbox.manifest.rules.context import View
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.policy import Policy

CODE, SINCE = "E302", "0.1"
TITLE = "agent denied what it is given"
WHY = """An agent that may not call its provider, see its workspace or run its own program fails at its first step, and
nothing at the place of failure says that two lines of the manifest disagree."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "agents.*.provider",
    "agents.*.workspace_dir",
    "agents.*.command",
    "policies",
    "policies.*.base",
    "policies.*.fs",
    "policies.*.exec",
    "policies.*.llm",
)
BAD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[policies.quiet]
llm = [{ mode = "deny", patterns = ["openai"] }]
[agents.builder]
command = ["builder"]
profile = "quiet"
provider = "openai"
"""
GOOD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[agents.builder]
command = ["builder"]
provider = "openai"
"""
EACH = "agents"


def check(view: View) -> Iterator[Finding]:
    """One finding a key."""
    if not view["agents.*.enabled"] or (policy := bound_policy(view, view.entry, "fs", "exec", "llm")) is None:
        return
    profile = view["agents.*.profile"]
    for key, what in _denied(view, policy):
        yield view.finding(
            key,
            message=f"{what}, and the profile {profile} denies it",
            remedy=f"Allow it in policies.{profile}, give another profile, or drop {view.path(key)}.",
            related=("agents.*.profile",),
        )


def _denied(view: View, policy: Policy) -> Iterator[tuple[str, str]]:
    """Each key that the policy works against, and what it gives."""
    if provider := view["agents.*.provider"]:
        models = parse("llm", provider)
        if not any(grant.scope == "llm" and grant.pattern.overlaps(models) for grant in policy.grants):
            yield "agents.*.provider", f"{view.entry} is given the provider {provider}"
    folder = view["agents.*.workspace_dir"]
    if folder and view.written("agents.*.workspace_dir") and not policy.decide("fs", "read", folder):
        yield "agents.*.workspace_dir", f"{view.entry} is given the workspace {folder}"
    command = view["agents.*.command"][0]
    if fits("exec", command) and not policy.bound({"$COMMAND": [command]}).decide("exec", "run", command):
        yield "agents.*.command", f"{view.entry} is to run {command}"

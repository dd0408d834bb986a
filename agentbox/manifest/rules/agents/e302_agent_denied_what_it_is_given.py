"""E302: a policy that denies what the agent's own table grants."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import agent_policy, is_pattern
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.policy import Policy

CODE, SINCE = "E302", "0.1"
TITLE = "agent denied what it is given"
REASON = """\
An agent that may not call its provider, read its workspace or run its own program fails at
its first step, and the error does not show that two lines of the manifest disagree."""
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


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key."""
    if (
        not context["agents.*.enabled"]
        or (policy := agent_policy(context, context.entry, "fs", "exec", "llm")) is None
    ):
        return
    profile = context["agents.*.profile"]
    for key, granted in _denied(context, policy):
        yield context.finding(
            key,
            message=f"{granted}, and the profile {profile} denies it",
            remedy=f"Allow it in policies.{profile}, give another profile, or drop "
            f"{context.path(key)}.",
            related=("agents.*.profile",),
        )


def _denied(context: RuleContext, policy: Policy) -> Iterator[tuple[str, str]]:
    """Each key that the policy contradicts, and what it grants."""
    if provider := context["agents.*.provider"]:
        models = parse("llm", provider)
        if not any(
            permission.scope == "llm" and permission.pattern.overlaps(models)
            for permission in policy.permissions
        ):
            yield "agents.*.provider", f"{context.entry} is given the provider {provider}"
    directory = context["agents.*.workspace_dir"]
    if (
        directory
        and context.is_written("agents.*.workspace_dir")
        and not policy.decide("fs", "read", directory)
    ):
        yield "agents.*.workspace_dir", f"{context.entry} is given the workspace {directory}"
    for command in context["agents.*.command"][:1]:
        bound = policy.with_bindings({"$COMMAND": [command]})
        if is_pattern("exec", command) and not bound.decide("exec", "run", command):
            yield "agents.*.command", f"{context.entry} is to run {command}"

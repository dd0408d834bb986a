"""W603: a policy or a provider that no agent uses."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import (
    effective_policy,
    enabled_agents,
    is_pattern,
    is_resolvable,
)
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.profiles import profiles

CODE, SINCE = "W603", "0.1"
TITLE = "defined and never used"
REASON = """\
An unused policy protects nothing, and an unused provider keeps a credential in the box for
no purpose. Either is kept for later, or a name elsewhere is wrong."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "agents.*.provider",
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.profile",
    "policies",
    "policies.*.base",
    "policies.*.llm",
    "providers",
    "providers.*.enabled",
)
BAD = """
[policies.web]
base = "standard"
"""
GOOD = """
[policies.web]
base = "standard"
[agents.builder]
command = ["builder"]
profile = "web"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per policy or provider."""
    agents = enabled_agents(context)
    used = {context[f"agents.{name}.profile"] for name in agents} | _server_profiles(context)
    reached = {policy for name in used for policy in _policy_steps(context, name)}
    for name in context.names("policies"):
        context[f"policies.{name}.base"]
        if name not in reached:
            yield context.finding(
                f"policies.{name}",
                message=f"no enabled agent has the policy {name}, by its profile or by the base of "
                "one",
                remedy=f'Give it to an agent (profile = "{name}"), or remove it.',
            )
    called = {context[f"agents.{name}.provider"] for name in agents}
    for name in context.names("providers"):
        if (
            context[f"providers.{name}.enabled"]
            and name not in called
            and not _is_covered(context, name, used)
        ):
            yield context.finding(
                f"providers.{name}",
                message=f"the provider {name} is enabled, and no enabled agent may call it",
                remedy=f'Give it to an agent (provider = "{name}"), or set '
                f"providers.{name}.enabled = false.",
            )


def _server_profiles(context: RuleContext) -> set[str]:
    return {
        context[f"mcp.servers.{name}.profile"]
        for name in context.names("mcp.servers")
        if context[f"mcp.servers.{name}.enabled"]
    }


def _policy_steps(context: RuleContext, name: str) -> list[str]:
    """The policies from a profile name down, as far as they resolve: E301 reports missing names and
    cycles.
    """
    result: list[str] = []
    while name not in (*profiles(), *result) and context.has("policies", name):
        result.append(name)
        name = context[f"policies.{name}.base"]
    return result


def _is_covered(context: RuleContext, provider: str, used: set[str]) -> bool:
    """Whether a model pattern of a used profile, or of any policy, refers to that provider."""
    written = [
        text
        for name in context.names("policies")
        for rule in context[f"policies.{name}.llm"]
        for text in rule.patterns
    ]
    patterns = [parse("llm", text) for text in written if is_pattern("llm", text)]
    for name in used:
        if is_resolvable(context, name):
            patterns += [
                permission.pattern
                for permission in effective_policy(context, name, "llm").permissions
                if permission.scope == "llm"
            ]
    models = parse("llm", provider)
    return any(not pattern.variable and pattern.overlaps(models) for pattern in patterns)

"""E301: an unknown profile, base, provider or agent."""

from collections.abc import Iterable, Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import enabled_agents, policy_chain
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.suggest import suggest_names
from agentbox.policy.profiles import PolicyChainError, profiles

CODE, SINCE = "E301", "0.1"
TITLE = "name that resolves to nothing"
REASON = """\
Profiles, providers and agents are looked up by name when an agent starts. An unknown name,
or a cycle of bases, would make that start fail; so would a disabled provider or agent."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "agents.*.provider",
    "agents.*.children",
    "agents.*.mcp",
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.transport",
    "mcp.servers.*.profile",
    "policies",
    "policies.*.base",
    "policies.*.llm",
    "policies.*.agent",
    "providers",
    "providers.*.enabled",
)
BAD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[agents.builder]
command = ["builder"]
provider = "opnai"
"""
GOOD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[agents.builder]
command = ["builder"]
provider = "openai"
"""
EACH = ("agents", "mcp.servers", "policies")


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key and name."""
    problems = (
        _check_policy(context)
        if context.table == "policies"
        else _check_server(context)
        if context.table == "mcp.servers"
        else _check_agent(context)
        if context["agents.*.enabled"]
        else ()
    )
    for key, text, choices, wrong_name in problems:
        suggestions = suggest_names(wrong_name, choices)
        hint = f"Did you mean {' or '.join(suggestions)}?" if suggestions else _choose(choices)
        yield context.finding(key, message=text, remedy=f"{hint} Fix {context.path(key)}.")


_Problem = tuple[str, str, tuple[str, ...], str]  # key, message, possible names, wrong name


def _check_server(context: RuleContext) -> Iterator[_Problem]:
    if context["mcp.servers.*.enabled"] and context["mcp.servers.*.transport"] == "stdio":
        yield from _find_profile(context, "mcp.servers.*.profile")


def _find_profile(context: RuleContext, key: str) -> Iterator[_Problem]:
    profile, names = context[key], (*profiles(), *context.names("policies"))
    if profile not in profiles() and not context.has("policies", profile):
        yield key, f"{profile} is neither a built-in profile nor a policy", names, profile


def _find_server(context: RuleContext, key: str, name: str) -> Iterator[_Problem]:
    if not context.has("mcp.servers", name):
        yield key, f"MCP server {name} not found", context.names("mcp.servers"), name
    elif not context[f"mcp.servers.{name}.enabled"]:
        yield key, f"the MCP server {name} is not enabled (mcp.servers.{name}.enabled)", (), name


def _check_agent(context: RuleContext) -> Iterator[_Problem]:
    yield from _find_profile(context, "agents.*.profile")
    if provider := context["agents.*.provider"]:
        yield from _find_provider(context, "agents.*.provider", provider)
    for child in context["agents.*.children"]:
        yield from _find_agent(context, "agents.*.children", child)
    for server in context["agents.*.mcp"]:
        yield from _find_server(context, "agents.*.mcp", server)


def _check_policy(context: RuleContext) -> Iterator[_Problem]:
    names = (*profiles(), *context.names("policies"))
    try:
        policy_chain(context, context.entry)
    except PolicyChainError as error:
        base = context["policies.*.base"]
        if error.is_cycle and context.entry == min(_base_cycle(context)):
            yield (
                "policies.*.base",
                f"{context.entry} is its own base: {' -> '.join(_base_cycle(context))}",
                (),
                base,
            )
        if not error.is_cycle and error.name == base:
            yield (
                "policies.*.base",
                f"{base} is neither a built-in profile nor a policy",
                names,
                base,
            )
    for scope in ("llm", "agent"):
        for index, rule in enumerate(context[f"policies.*.{scope}"]):
            for text in rule.patterns:
                key = f"policies.*.{scope}[{index}].patterns"
                if scope == "llm" and text[:1] not in ("$", "*"):
                    yield from _find_provider(context, key, text.partition("/")[0])
                if scope == "agent" and text[:1] != "$" and "*" not in text:
                    yield from _find_agent(context, key, text)


def _base_cycle(context: RuleContext) -> tuple[str, ...]:
    """The cycle from this policy back to itself; only "~", which is not a name, if the cycle is
    below it.
    """
    names = [context.entry]
    while (base := context[f"policies.{names[-1]}.base"]) not in names:
        names.append(base)
    return (*names, base) if base == context.entry else ("~",)


def _find_provider(context: RuleContext, key: str, name: str) -> Iterator[_Problem]:
    if not context.has("providers", name):
        yield key, f"provider {name} not found", context.names("providers"), name
    elif not context[f"providers.{name}.enabled"]:
        yield key, f"the provider {name} is not enabled (providers.{name}.enabled)", (), name


def _find_agent(context: RuleContext, key: str, name: str) -> Iterator[_Problem]:
    if not context.has("agents", name):
        yield key, f"agent {name} not found", enabled_agents(context), name
    elif not context[f"agents.{name}.enabled"]:
        yield key, f"the agent {name} is not enabled (agents.{name}.enabled)", (), name


def _choose(choices: Iterable[str]) -> str:
    listed = ", ".join(sorted(choices))
    return f"Available: {listed}." if listed else "Define it, turn it on, or name another."

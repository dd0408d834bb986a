"""W603: a policy or a provider that no agent uses."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import enabled_agents, fits, policy_of, resolves
from agentbox.manifest.rules.context import View
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.profiles import profiles

CODE, SINCE = "W603", "0.1"
TITLE = "defined and never used"
WHY = """A policy that no agent has protects nothing, and a provider that no agent may call costs a credential in the box
for nothing. Either is kept for later, or a name elsewhere is wrong."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "agents.*.provider",
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


def check(view: View) -> Iterator[Finding]:
    """One finding a policy or provider."""
    agents = enabled_agents(view)
    used = {view[f"agents.{name}.profile"] for name in agents}
    reached = {step for name in used for step in _steps(view, name)}
    for name in view.names("policies"):
        view[f"policies.{name}.base"]
        if name not in reached:
            yield view.finding(
                f"policies.{name}",
                message=f"no enabled agent has the policy {name}, by its profile or by the base of one",
                remedy=f'Give it to an agent (profile = "{name}"), or remove it.',
            )
    called = {view[f"agents.{name}.provider"] for name in agents}
    for name in view.names("providers"):
        if view[f"providers.{name}.enabled"] and name not in called and not _is_covered(view, name, used):
            yield view.finding(
                f"providers.{name}",
                message=f"the provider {name} is enabled, and no enabled agent may call it",
                remedy=f'Give it to an agent (provider = "{name}"), or set providers.{name}.enabled = false.',
            )


def _steps(view: View, name: str) -> list[str]:
    """The policies from a profile name down, as far as they lead: E301 reports a name that is missing or comes twice."""
    found: list[str] = []
    while name not in (*profiles(), *found) and view.has("policies", name):
        found.append(name)
        name = view[f"policies.{name}.base"]
    return found


def _is_covered(view: View, provider: str, used: set[str]) -> bool:
    """Whether a model pattern of a profile in use, or of any policy, is about that provider."""
    written = [
        text for name in view.names("policies") for rule in view[f"policies.{name}.llm"] for text in rule.patterns
    ]
    patterns = [parse("llm", text) for text in written if fits("llm", text)]
    for name in used:
        if resolves(view, name):
            patterns += [grant.pattern for grant in policy_of(view, name, "llm").grants if grant.scope == "llm"]
    models = parse("llm", provider)
    return any(not pattern.variable and pattern.overlaps(models) for pattern in patterns)

"""E301: a profile, base, provider or agent that nothing has."""

from collections.abc import Iterable, Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import chain_of, enabled_agents
from agentbox.manifest.rules.context import View
from agentbox.manifest.suggest import nearest
from agentbox.policy.profiles import ChainError, profiles

CODE, SINCE = "E301", "0.1"
TITLE = "name that resolves to nothing"
WHY = """Profiles, providers and agents are looked up by name when an agent starts. A name that nobody has, or that leads
back to itself, would stop it then; one of something disabled would stop it on the day when it is needed."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.profile",
    "agents.*.provider",
    "agents.*.children",
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
EACH = ("agents", "policies")


def check(view: View) -> Iterator[Finding]:
    """One finding a key and name."""
    found = _of_policy(view) if view.table == "policies" else _of_agent(view) if view["agents.*.enabled"] else ()
    for key, text, choices, word in found:
        near = nearest(word, choices)
        hint = f"Did you mean {' or '.join(near)}?" if near else _choose(choices)
        yield view.finding(key, message=text, remedy=f"{hint} Mend {view.path(key)}.")


_Wrong = tuple[str, str, tuple[str, ...], str]  # key, message, names that would do, name that does not


def _of_agent(view: View) -> Iterator[_Wrong]:
    profile, known = view["agents.*.profile"], (*profiles(), *view.names("policies"))
    if profile not in profiles() and not view.has("policies", profile):
        yield "agents.*.profile", f"{profile} is neither a built-in profile nor a policy", known, profile
    if provider := view["agents.*.provider"]:
        yield from _provider(view, "agents.*.provider", provider)
    for child in view["agents.*.children"]:
        yield from _agent(view, "agents.*.children", child)


def _of_policy(view: View) -> Iterator[_Wrong]:
    known = (*profiles(), *view.names("policies"))
    try:
        chain_of(view, view.entry)
    except ChainError as error:
        base = view["policies.*.base"]
        if error.ring and view.entry == min(_ring(view)):
            yield "policies.*.base", f"{view.entry} is its own base: {' -> '.join(_ring(view))}", (), base
        if not error.ring and error.name == base:
            yield "policies.*.base", f"{base} is neither a built-in profile nor a policy", known, base
    for scope in ("llm", "agent"):
        for at, rule in enumerate(view[f"policies.*.{scope}"]):
            for text in rule.patterns:
                key = f"policies.*.{scope}[{at}].patterns"
                if scope == "llm" and text[:1] not in ("$", "*"):
                    yield from _provider(view, key, text.partition("/")[0])
                if scope == "agent" and text[:1] != "$" and "*" not in text:
                    yield from _agent(view, key, text)


def _ring(view: View) -> tuple[str, ...]:
    """The names from this policy back to itself; only "~", which is no name, when the ring lies below it."""
    names = [view.entry]
    while (below := view[f"policies.{names[-1]}.base"]) not in names:
        names.append(below)
    return (*names, below) if below == view.entry else ("~",)


def _provider(view: View, key: str, name: str) -> Iterator[_Wrong]:
    if not view.has("providers", name):
        yield key, f"there is no provider {name}", view.names("providers"), name
    elif not view[f"providers.{name}.enabled"]:
        yield key, f"the provider {name} is not enabled (providers.{name}.enabled)", (), name


def _agent(view: View, key: str, name: str) -> Iterator[_Wrong]:
    if not view.has("agents", name):
        yield key, f"there is no agent {name}", enabled_agents(view), name
    elif not view[f"agents.{name}.enabled"]:
        yield key, f"the agent {name} is not enabled (agents.{name}.enabled)", (), name


def _choose(choices: Iterable[str]) -> str:
    listed = ", ".join(sorted(choices))
    return f"There is {listed}." if listed else "Define it, turn it on, or name another."

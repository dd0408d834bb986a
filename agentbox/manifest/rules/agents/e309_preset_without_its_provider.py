"""E309: a preset of an agent CLI, and no provider of models that the CLI can speak to."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E309", "0.1"
TITLE = "preset without its provider"
REASON = """\
A preset points the CLI to the provider of its agent. Without one, or with one that speaks another
protocol, the CLI starts and fails at its first call of the model."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.preset",
    "agents.*.provider",
    "providers",
    "providers.*.kind",
)
BAD = """
[providers.models]
enabled = true
kind = "openai"
env_var = "MODEL_KEY"
[agents.coder]
command = ["claude", "-p"]
preset = "claude-code"
provider = "models"
"""
GOOD = """
[providers.models]
enabled = true
kind = "anthropic"
env_var = "MODEL_KEY"
[agents.coder]
command = ["claude", "-p"]
preset = "claude-code"
provider = "models"
"""
EACH = "agents"


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per agent."""
    name = context["agents.*.preset"]
    if not context["agents.*.enabled"] or not name:
        return
    from agentbox.manifest.features.presets import presets  # most manifests have no preset

    supported = presets()[name].provider_kinds
    kinds = " or ".join(supported)
    provider = context["agents.*.provider"]
    if not provider:
        yield context.finding(
            "agents.*.preset",
            message=f"{context.entry} has the preset {name} and no provider of models",
            remedy=f"Set {context.path('agents.*.provider')} to a provider of kind {kinds}.",
        )
    elif (
        context.has("providers", provider)
        and (kind := context[f"providers.{provider}.kind"]) not in supported
    ):
        yield context.finding(
            "agents.*.preset",
            message=f"{context.entry} has the preset {name}, which speaks {kinds}; "
            f"its provider {provider} speaks {kind}",
            remedy=f"Set {context.path('agents.*.provider')} to a provider of kind {kinds}, "
            "or choose another preset.",
            related=(f"providers.{provider}.kind",),
        )

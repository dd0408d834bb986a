"""E306: the program of an agent is not in the image."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, turn_on

CODE, SINCE = "E306", "0.1"
TITLE = "agent's command belongs to a feature that is off"
REASON = """\
The program is in the image only with its feature. Without it the agent would end at once
with "no such file"."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.command",
    "agents.*.preset",
    "agents.*.protocol",
    *GATES,
)
BAD = """
[agents.builder]
command = ["claude", "-p"]
"""
GOOD = """
[agents.builder]
command = ["claude", "-p"]
[toolchains]
claude_code = true
"""
EACH = "agents"
_PROGRAMS: Final = "/usr/bin/"  # where a preset names a program of the image


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding an agent."""
    if context["agents.*.enabled"]:
        words = context["agents.*.command"]
        speaks_acp = context["agents.*.protocol"] == "acp"  # else a preset has no command (E310)
        preset = context["agents.*.preset"] if speaks_acp else ""
        programs = words[:1] if words else _programs_of_preset(preset)
        findings = (_missing(context, program.rpartition("/")[2]) for program in programs)
        yield from islice(filter(None, findings), 1)


def _missing(context: RuleContext, command: str) -> Finding | None:
    owners = [feature for feature in context.features.values() if command in feature.commands]
    enabled_names = {feature.name for feature, _ in gated_features(context)}
    if owners and not any(
        feature.gate is None or feature.name in enabled_names for feature in owners
    ):
        switches = " or ".join(turn_on(feature) for feature in owners)
        return context.finding(
            "agents.*.command",
            message=f"{command} is not in the image: it comes with "
            f"{' or '.join(feature.name for feature in owners)}",
            remedy=f"Set {switches}.",
            related=tuple(feature.gate.key for feature in owners if feature.gate),
        )
    return None


def _programs_of_preset(name: str) -> tuple[str, ...]:
    """Those with which its CLI speaks ACP, for an agent without a command: what is started, and the
    CLI behind it."""
    if not name:
        return ()
    from agentbox.manifest.features.presets import presets  # most manifests have no preset

    preset = presets()[name]
    named = (value for value in preset.env.values() if value.startswith(_PROGRAMS))
    return (*preset.acp_command[:1], *named)

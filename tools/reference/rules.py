"""docs/rules.md, from the rules."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.rules._retired import RETIRED
from agentbox.manifest.rules.context import GATES
from agentbox.manifest.rules.discovery import Rule, discover

from reference import COMMAND

TARGET: Final = CHECKOUT / "docs/rules.md"
BANDS: Final = {
    "0": "the file, and the base set",
    "1": "ports and resources",
    "2": "security and exceptions",
    "3": "agents, policies, egress",
    "4": "mesh and identity",
    "5": "image and lock",
    "6": "dead configuration",
    "7": "backups and the network",
}
_INTRO: Final = f"""# Rules over the manifest

<!-- Generated from agentbox/manifest/rules/ by `{COMMAND}`. Do not edit. -->

The schema defines the format of a manifest; the rules find what makes no sense, cannot work or is
unsafe. `agentbox config validate` runs all of them, `agentbox config explain CODE` prints one. A
code never changes its meaning; its letter is the severity: E error, W warning, I info. Errors stop
`up`, `build` and the boot; warnings do not, unless `--strict` is given.
"""


def page() -> str:
    """Return the page."""
    return "\n".join(
        [
            _INTRO,
            *_index(),
            *(line for rule in discover().values() for line in _rule(rule)),
            *_retired(),
        ]
    )


def _index() -> Iterator[str]:
    for digit, name in BANDS.items():
        rules = [rule for rule in discover().values() if rule.code[1] == digit]
        if rules:
            yield (
                f"**{digit}xx: {name}.** "
                + ", ".join(f"[{rule.code}](#{rule.code.lower()})" for rule in rules)
                + "\n"
            )


def _rule(rule: Rule) -> Iterator[str]:
    yield f"## {rule.code}\n"
    yield f"**{rule.title}** ({rule.severity}, since {rule.since})\n"
    yield f"{rule.reason}\n"
    gated = set(GATES) <= set(rule.reads)
    keys = [f"`{key}`" for key in rule.reads if not gated or key not in GATES]
    yield f"Reads {', '.join([*keys, *(['every gate of a feature'] if gated else [])])}.\n"
    yield from _example("Trips", rule.bad)
    yield from _example("Passes", rule.good)


def _example(label: str, fragment: str) -> Iterator[str]:
    text = fragment.strip()
    yield (
        f"{label}:\n\n```toml\n{text}\n```\n"
        if text
        else f"{label}: the smallest manifest, in another environment.\n"
    )


def _retired() -> Iterator[str]:
    yield "## Codes not in use\n"
    yield "| Code | Reason |\n|---|---|"
    yield from (f"| {code} | {retired.reason} |" for code, retired in sorted(RETIRED.items()))
    yield ""


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    return {TARGET: page()}

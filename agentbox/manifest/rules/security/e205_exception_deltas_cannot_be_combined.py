"""E205: contradicting exceptions."""

from collections.abc import Iterator, Mapping

from agentbox.manifest.features.security_exceptions import open_gates, parents
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext

CODE, SINCE = "E205", "0.1"
TITLE = "exception deltas cannot be combined"
REASON = """\
A path can have one mount, and a box one runtime and one seccomp profile. If two exceptions
need different ones, choosing either would break the other."""
READS = (
    "security.exceptions",
    "security.exceptions.*.inherits",
    "security.exceptions.*.builtin",
    "security.exceptions.*.volumes",
    "security.exceptions.*.runtime",
    "security.exceptions.*.seccomp",
    *GATES,
)
BAD = """
[security.exceptions.desktop]
reason = "the display server wants it"
inherits = ["playwright"]
[security.exceptions.playwright]
reason = "the browser wants it"
inherits = ["desktop"]
"""
GOOD = """
[security.exceptions.desktop]
reason = "the display server wants it"
inherits = ["playwright"]
[security.exceptions.playwright]
"""


_TABLE = "security.exceptions"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per cycle, inherited key whose gate is off, and conflicting value of
    two blocks.
    """
    names = context.names(_TABLE)
    ancestry = {name: _parents(context, name) for name in names}
    for name in names:
        if (chain := _cycle(name, ancestry)) and name == min(chain):
            yield context.finding(
                f"{_TABLE}.{name}.inherits",
                message=f"inherits itself: {' -> '.join((*chain, name))}",
                remedy="Remove one of these `inherits` entries.",
                related=tuple(f"{_TABLE}.{other}.inherits" for other in chain[1:]),
            )
        yield from _check_gates(context, name)
    yield from _conflicts(context, names)


def _parents(context: RuleContext, name: str) -> tuple[str, ...]:
    for key in ("inherits", "builtin"):
        context[f"{_TABLE}.{name}.{key}"]
    return parents(name, context.model.security.exceptions[name])  # type: ignore[arg-type,index]


def _cycle(start: str, ancestry: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The chain from `start` back to itself, without the repeated end."""
    pending: list[tuple[str, ...]] = [(start,)]
    visited: set[str] = set()
    while pending:
        chain = pending.pop()
        for parent in ancestry.get(chain[-1], ()):
            if parent == start:
                return chain
            if parent not in visited:
                visited.add(parent)
                pending.append((*chain, parent))
    return ()


def _check_gates(context: RuleContext, name: str) -> Iterator[Finding]:
    gates = open_gates(context.features, context.enabled_features)
    if name not in gates:
        return  # reported by E020
    for parent in context[f"{_TABLE}.{name}.inherits"]:
        if parent not in gates:
            yield context.finding(
                f"{_TABLE}.{name}.inherits",
                message=f"inherits {parent}, whose gate is off",
                remedy=f"Turn its feature on, or remove {parent} from `inherits`.",
            )


def _conflicts(context: RuleContext, names: tuple[str, ...]) -> Iterator[Finding]:
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    for name in names:
        for field, target, value in _single_values(context, name):
            owner, first = owners.setdefault((field, target), (name, value))
            if first != value:
                yield context.finding(
                    f"{_TABLE}.{name}.{field}",
                    message=f'{target or field} is "{value}" here and "{first}" in {owner}',
                    remedy="Keep one of the two.",
                    related=(f"{_TABLE}.{owner}.{field}",),
                )


def _single_values(context: RuleContext, name: str) -> Iterator[tuple[str, str, str]]:
    """Field, target and value, for values that can be set once only."""
    for volume in context[f"{_TABLE}.{name}.volumes"]:
        yield "volumes", volume.target, volume.source
    for field in ("runtime", "seccomp"):
        if value := context[f"{_TABLE}.{name}.{field}"]:
            yield field, "", value

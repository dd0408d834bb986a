"""E205: two exceptions that contradict each other."""

from collections.abc import Iterator, Mapping

from agentbox.manifest.features.exceptions import gates_on, parents
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, View

CODE, SINCE = "E205", "0.1"
TITLE = "exception deltas cannot be combined"
WHY = """A place can hold one mount, and a box has one runtime and one seccomp list. Where two exceptions ask for
different ones, keeping either silently would break the other."""
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


def check(view: View) -> Iterator[Finding]:
    """One finding a cycle, an inherited key whose gate is off, or a value that two blocks give differently."""
    names = view.names(_TABLE)
    above = {name: _parents(view, name) for name in names}
    for name in names:
        if (chain := _cycle(name, above)) and name == min(chain):
            yield view.finding(
                f"{_TABLE}.{name}.inherits",
                message=f"inherits itself: {' -> '.join((*chain, name))}",
                remedy="Remove one of these `inherits` entries.",
                related=tuple(f"{_TABLE}.{other}.inherits" for other in chain[1:]),
            )
        yield from _inherited_but_off(view, name)
    yield from _conflicts(view, names)


def _parents(view: View, name: str) -> tuple[str, ...]:
    for key in ("inherits", "builtin"):
        view[f"{_TABLE}.{name}.{key}"]
    return parents(name, view.model.security.exceptions[name])  # type: ignore[arg-type,index]


def _cycle(start: str, above: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The chain from `start` back to itself, without the repeated end."""
    waiting: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while waiting:
        chain = waiting.pop()
        for parent in above.get(chain[-1], ()):
            if parent == start:
                return chain
            if parent not in seen:
                seen.add(parent)
                waiting.append((*chain, parent))
    return ()


def _inherited_but_off(view: View, name: str) -> Iterator[Finding]:
    gated = gates_on(view.features, view.on)
    if name not in gated:
        return  # E020 says so already
    for parent in view[f"{_TABLE}.{name}.inherits"]:
        if parent not in gated:
            yield view.finding(
                f"{_TABLE}.{name}.inherits",
                message=f"inherits {parent}, whose gate is off",
                remedy=f"Turn its feature on, or remove {parent} from `inherits`.",
            )


def _conflicts(view: View, names: tuple[str, ...]) -> Iterator[Finding]:
    given: dict[tuple[str, str], tuple[str, str]] = {}
    for name in names:
        for what, place, value in _single_values(view, name):
            owner, first = given.setdefault((what, place), (name, value))
            if first != value:
                yield view.finding(
                    f"{_TABLE}.{name}.{what}",
                    message=f'{place or what} is "{value}" here and "{first}" in {owner}',
                    remedy="Keep one of the two.",
                    related=(f"{_TABLE}.{owner}.{what}",),
                )


def _single_values(view: View, name: str) -> Iterator[tuple[str, str, str]]:
    """Field, place, value of what can be there once."""
    for volume in view[f"{_TABLE}.{name}.volumes"]:
        yield "volumes", volume.target, volume.source
    for what in ("runtime", "seccomp"):
        if value := view[f"{_TABLE}.{name}.{what}"]:
            yield what, "", value

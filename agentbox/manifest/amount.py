"""How much a manifest holds, before it is parsed: tomllib takes time by the square of a dotted key's parts, and what checks a
document after it takes time for each value. Nothing is interpreted; on a document that is no TOML the answer means nothing."""

import re
from typing import Final, NamedTuple

MOST_PARTS: Final = 64  # of one key
MOST_VALUES: Final = 10_000  # signs that a key or value stands beside

# A string that does not end is taken as far as it might go, so that no place of a document is looked at twice.
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\n]*'?)"""
_TOKEN: Final = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""+)?'''
    r"|'''[^']*(?:'(?!'')[^']*)*(?:'''+)?"
    r"|#[^\n]*"
    rf"|(?P<run>{_PART}(?:[ \t]*\.[ \t]*{_PART})*)"
    r"|(?P<sign>[=\[{,])",
    re.DOTALL,
)
_PARTS: Final = re.compile(_PART, re.DOTALL)


class Excess(NamedTuple):
    """What is too much, and where it begins (character offset)."""

    what: str
    at: int


def excess(text: str) -> Excess | None:
    """The first thing in a document that is beyond what a manifest may hold."""
    if text.count(".") < MOST_PARTS and sum(map(text.count, "=[{,")) <= MOST_VALUES:
        return None
    signs = 0
    for found in _TOKEN.finditer(text):
        if found.lastgroup is None:
            continue
        dots = found[0].count(".")
        parts = [one.start() for one in _PARTS.finditer(found[0])] if dots >= MOST_PARTS else []
        if len(parts) > MOST_PARTS:
            at = found.start() + parts[MOST_PARTS - 1]
            return Excess(f"values are nested too deeply: a key has more than {MOST_PARTS} parts", at)
        signs += len(parts) if dots >= MOST_PARTS else dots if found.lastgroup == "run" else 1
        if signs > MOST_VALUES:
            return Excess(f"the file holds more than {MOST_VALUES} keys and values", 0)
    return None

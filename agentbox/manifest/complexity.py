"""How much a manifest holds, before it is parsed: tomllib takes time by the square of a dotted key's parts, and what checks a
document after it takes time for each value. Nothing is interpreted; on a document that is no TOML the answer means nothing."""

import re
from typing import Final, NamedTuple

MAX_KEY_PARTS: Final = 64  # of one key
MAX_VALUES: Final = 10_000  # signs that a key or value stands beside

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

    description: str
    offset: int


def find_excess(text: str) -> Excess | None:
    """The first thing in a document that is beyond what a manifest may hold."""
    if text.count(".") < MAX_KEY_PARTS and sum(map(text.count, "=[{,")) <= MAX_VALUES:
        return None
    signs = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup is None:
            continue
        dots = match[0].count(".")
        parts = (
            [part.start() for part in _PARTS.finditer(match[0])] if dots >= MAX_KEY_PARTS else []
        )
        if len(parts) > MAX_KEY_PARTS:
            offset = match.start() + parts[MAX_KEY_PARTS - 1]
            return Excess(
                f"values are nested too deeply: a key has more than {MAX_KEY_PARTS} parts", offset
            )
        signs += len(parts) if dots >= MAX_KEY_PARTS else dots if match.lastgroup == "run" else 1
        if signs > MAX_VALUES:
            return Excess(f"the file holds more than {MAX_VALUES} keys and values", 0)
    return None

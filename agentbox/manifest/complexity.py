"""Bounds the size of a document before it is parsed: tomllib needs quadratic time in the parts of a
dotted key, and later checks need time per value. Nothing is interpreted; for invalid TOML the
result is meaningless.
"""

import re
from typing import Final, NamedTuple

MAX_KEY_PARTS: Final = 64  # of one key
MAX_VALUES: Final = 10_000  # number of key and value delimiters

# An unterminated string is consumed as far as possible, so that nothing is scanned twice.
_SEGMENT: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\n]*'?)"""
_TOKEN: Final = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""+)?'''
    r"|'''[^']*(?:'(?!'')[^']*)*(?:'''+)?"
    r"|#[^\n]*"
    rf"|(?P<run>{_SEGMENT}(?:[ \t]*\.[ \t]*{_SEGMENT})*)"
    r"|(?P<sign>[=\[{,])",
    re.DOTALL,
)
_SEGMENTS: Final = re.compile(_SEGMENT, re.DOTALL)


class Excess(NamedTuple):
    """What exceeds a limit, and its character offset."""

    description: str
    offset: int


def find_excess(text: str) -> Excess | None:
    """The first element of a document that exceeds a limit."""
    if text.count(".") < MAX_KEY_PARTS and sum(map(text.count, "=[{,")) <= MAX_VALUES:
        return None
    signs = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup is None:
            continue
        dots = match[0].count(".")
        parts = (
            [segment.start() for segment in _SEGMENTS.finditer(match[0])]
            if dots >= MAX_KEY_PARTS
            else []
        )
        if len(parts) > MAX_KEY_PARTS:
            offset = match.start() + parts[MAX_KEY_PARTS - 1]
            return Excess(
                f"values are nested too deeply: a key has more than {MAX_KEY_PARTS} parts", offset
            )
        signs += len(parts) if dots >= MAX_KEY_PARTS else dots if match.lastgroup == "run" else 1
        if signs > MAX_VALUES:
            return Excess(f"the file contains more than {MAX_VALUES} keys and values", 0)
    return None

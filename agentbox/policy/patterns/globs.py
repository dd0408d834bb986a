"""Globs over a text: `*` is any text, `?` any one character. Time is proportional to the product of
the lengths.
"""

import re
from functools import cache
from typing import Final

_RUN: Final = re.compile(r"(?<![*?])[?]*+\*[*?]*+")


def is_glob(text: str) -> bool:
    """True if the text contains wildcards."""
    return "*" in text or "?" in text


def matches(glob: str, text: str) -> bool:
    """Whether the glob matches the text."""
    return glob == text or (is_glob(glob) and _consumes(_normalize(glob), text, literal=True))


def covers(outer: str, inner: str) -> bool:
    """Whether `outer` matches every text that `inner` matches."""
    return outer in ("*", inner) or _consumes(_normalize(outer), _normalize(inner), literal=False)


def overlaps(first: str, second: str) -> bool:
    """Whether both match some text: a search over pairs of positions."""
    a, b = _normalize(first), _normalize(second)
    pending, visited = [(0, 0)], set()
    while pending:
        i, j = pending.pop()
        if (i, j) in visited:
            continue
        visited.add((i, j))
        if i == len(a) and j == len(b):
            return True
        char_a, char_b = a[i : i + 1], b[j : j + 1]
        if char_a == "*":
            pending += [(i + 1, j), *([(i, j + 1)] if char_b else [])]
        if char_b == "*":
            pending += [(i, j + 1), *([(i + 1, j)] if char_a else [])]
        if char_a and char_b and (char_a == char_b or "?" in (char_a, char_b)):
            pending.append((i + 1, j + 1))
    return False


@cache
def _normalize(glob: str) -> str:
    """The canonical form: in a run of wildcards the question marks come first, then one star."""
    return _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)


def _consumes(glob: str, text: str, *, literal: bool) -> bool:
    """Whether the glob consumes the text. Not `literal`: a star in the text is matched by a star
    only.
    """
    i = j = 0
    star, resume = -1, 0
    while j < len(text):
        if i < len(glob) and glob[i] == "*":
            star, resume = i, j
            i += 1
        elif i < len(glob) and _accepts(glob[i], text[j], literal):
            i, j = i + 1, j + 1
        elif star >= 0:
            resume += 1
            i, j = star + 1, resume
        else:
            return False
    return all(character == "*" for character in glob[i:])


def _accepts(expected: str, actual: str, literal: bool) -> bool:
    return expected == actual or (expected == "?" and (literal or actual != "*"))

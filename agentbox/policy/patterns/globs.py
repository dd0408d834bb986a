"""Globs over one text: `*` is any text, `?` any one character, all else itself. Time grows with the product of lengths."""

import re
from functools import cache
from typing import Final

_RUN: Final = re.compile(r"(?<![*?])[?]*+\*[*?]*+")


def is_glob(text: str) -> bool:
    """True for text that stands for more than itself."""
    return "*" in text or "?" in text


def matches(glob: str, text: str) -> bool:
    """Whether the text is one of those that the glob stands for."""
    return glob == text or (is_glob(glob) and _consumes(_normalize(glob), text, literal=True))


def covers(outer: str, inner: str) -> bool:
    """Whether each text of `narrow` is one of `wide`."""
    return outer in ("*", inner) or _consumes(_normalize(outer), _normalize(inner), literal=False)


def overlaps(left: str, right: str) -> bool:
    """Whether some text is in both: a walk over pairs of places that the same text can reach."""
    a, b = _normalize(left), _normalize(right)
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
    """One spelling for one set: in a run of wildcards the question marks come first and one star last."""
    return _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)


def _consumes(glob: str, text: str, *, literal: bool) -> bool:
    """Whether the glob takes the text, a character at a time. Not `literal`: a star in the text is taken by a star only."""
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

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
    return glob == text or (is_glob(glob) and _absorbs(_normal(glob), text, literal=True))


def covers(wide: str, narrow: str) -> bool:
    """Whether each text of `narrow` is one of `wide`."""
    return wide in ("*", narrow) or _absorbs(_normal(wide), _normal(narrow), literal=False)


def overlaps(left: str, right: str) -> bool:
    """Whether some text is in both: a walk over pairs of places that the same text can reach."""
    a, b = _normal(left), _normal(right)
    waiting, seen = [(0, 0)], set()
    while waiting:
        i, j = waiting.pop()
        if (i, j) in seen:
            continue
        seen.add((i, j))
        if i == len(a) and j == len(b):
            return True
        at_a, at_b = a[i : i + 1], b[j : j + 1]
        if at_a == "*":
            waiting += [(i + 1, j), *([(i, j + 1)] if at_b else [])]
        if at_b == "*":
            waiting += [(i, j + 1), *([(i + 1, j)] if at_a else [])]
        if at_a and at_b and (at_a == at_b or "?" in (at_a, at_b)):
            waiting.append((i + 1, j + 1))
    return False


@cache
def _normal(glob: str) -> str:
    """One spelling for one set: in a run of wildcards the question marks come first and one star last."""
    return _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)


def _absorbs(glob: str, text: str, *, literal: bool) -> bool:
    """Whether the glob takes the text, a character at a time. Not `literal`: a star in the text is taken by a star only."""
    i = j = 0
    star, resume = -1, 0
    while j < len(text):
        if i < len(glob) and glob[i] == "*":
            star, resume = i, j
            i += 1
        elif i < len(glob) and _takes(glob[i], text[j], literal):
            i, j = i + 1, j + 1
        elif star >= 0:
            resume += 1
            i, j = star + 1, resume
        else:
            return False
    return all(rest == "*" for rest in glob[i:])


def _takes(wanted: str, there: str, literal: bool) -> bool:
    return wanted == there or (wanted == "?" and (literal or there != "*"))

"""Version numbers as programs print them."""

import re
from collections.abc import Sequence

_FIRST = re.compile(r"\d+(?:\.\d+)+")


def parsed(said: str) -> tuple[int, ...]:
    """The first number of a text, `20.10.24+dfsg1` as (20, 10, 24). Raises ValueError where there is none."""
    found = _FIRST.search(said)
    if found is None:
        raise ValueError(f"no version in {said!r}")
    return tuple(map(int, found[0].split(".")))


def at_least(said: str, oldest: Sequence[int]) -> bool:
    """False also for a text without a number."""
    try:
        return parsed(said) >= tuple(oldest)
    except ValueError:
        return False


def number(version: Sequence[int]) -> str:
    """`20.10`."""
    return ".".join(map(str, version))

"""Parsing and comparison of version numbers in program output."""

import re
from collections.abc import Sequence

_VERSION_PATTERN = re.compile(r"\d+(?:\.\d+)+")


def parse_version(text: str) -> tuple[int, ...]:
    """The first version in a text, `20.10.24+dfsg1` as (20, 10, 24). Raises ValueError if none."""
    match = _VERSION_PATTERN.search(text)
    if match is None:
        raise ValueError(f"no version in {text!r}")
    return tuple(map(int, match[0].split(".")))


def meets_minimum(text: str, minimum: Sequence[int]) -> bool:
    """Also False for a text without a version."""
    try:
        return parse_version(text) >= tuple(minimum)
    except ValueError:
        return False


def format_version(version: Sequence[int]) -> str:
    """`20.10`."""
    return ".".join(map(str, version))

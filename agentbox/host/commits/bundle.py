"""Parses the header of a git bundle, so that git gets nothing but the pack in it. Its format:
gitformat-bundle(5)."""

from __future__ import annotations

from typing import IO, Final

from agentbox.agents.review.commits.refs import is_id
from agentbox.core.frozen import frozen

MAX_BUNDLE: Final = 300 << 20  # bytes; a box makes none above 256 MiB
_SIGNATURES: Final = (b"# v2 git bundle\n", b"# v3 git bundle\n")
_MAX_LINES: Final = 2_000
_MAX_LINE: Final = 2_000


@frozen
class BundleHeader:
    """`prerequisites`: commits that the receiver has. `tip`: the commit of its only ref."""

    object_format: str
    prerequisites: tuple[str, ...]
    tip: str


def read_header(stream: IO[bytes]) -> BundleHeader:
    """Leaves the stream at the pack. Raises ValueError for a bundle that a box does not make."""
    if stream.readline(_MAX_LINE) not in _SIGNATURES:
        raise ValueError("it is not a git bundle")
    object_format, prerequisites, tips = "sha1", list[str](), list[str]()
    for _ in range(_MAX_LINES):
        line = stream.readline(_MAX_LINE)
        if line == b"\n":
            break
        text = line.decode("ascii", "replace").rstrip("\n")
        words = text.split(" ")
        if text.startswith("@object-format="):
            object_format = text.partition("=")[2]
        elif text.startswith("-") and is_id(words[0][1:]):
            prerequisites.append(words[0][1:])
        elif is_id(words[0]) and len(words) == 2:
            tips.append(words[0])
        else:
            raise ValueError("its header has an unknown line")
    else:
        raise ValueError("its header does not end")
    if len(tips) != 1 or object_format not in ("sha1", "sha256"):
        raise ValueError("it does not have exactly one ref")
    return BundleHeader(
        object_format=object_format, prerequisites=tuple(prerequisites), tip=tips[0]
    )

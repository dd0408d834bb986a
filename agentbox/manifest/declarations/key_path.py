"""Key paths: tuples of names and list positions, `adapters.beads.use` or `tmpfs[0].size`
as text.
"""

import json
import re

Segment = str | int
KeyPath = tuple[Segment, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_text(path: KeyPath) -> str:
    """The text form; names that are not bare keys in TOML are quoted."""
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += ("." if text else "") + (
                segment if _BARE.fullmatch(segment) else json.dumps(segment, ensure_ascii=False)
            )
    return text

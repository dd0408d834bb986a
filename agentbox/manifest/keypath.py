"""Key paths: tuples of names and list positions, `adapters.beads.use` or `tmpfs[0].size`
as text.
"""

import json
import re

Part = str | int
KeyPath = tuple[Part, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_text(path: KeyPath) -> str:
    """The text form; names that are not bare keys in TOML are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (
                part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            )
    return text

"""Key paths: tuples of names and list positions, `adapters.beads.use` or `tmpfs[0].size`
as text.
"""

import json
import re

Segment = str | int
KeyPath = tuple[Segment, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[^."]+')


def to_text(path: KeyPath) -> str:
    """The text form; names that are not bare keys in TOML are quoted."""
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += ("." if text else "") + quoted(segment)
    return text


def quoted(name: str) -> str:
    """A name as it stands in the text form."""
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def fill_entry(text: str, name: str) -> str:
    """The text form with the first `*`, which stands for a map entry, replaced by a name. Names
    that contain a `*` are quoted and stay."""
    parts = _PARTS.findall(text)
    if "*" in parts:
        parts[parts.index("*")] = quoted(name)
    return ".".join(parts)


def split_names(text: str) -> list[str]:
    """The names of a text form without list positions, unquoted; `*` stays as it is."""
    return [json.loads(part) if part.startswith('"') else part for part in _PARTS.findall(text)]

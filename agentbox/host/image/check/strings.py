"""No file names the store: an image that did would depend on the machine that built it."""

import mmap
from pathlib import Path

from agentbox.host.image.check.layers import Root

_STORE = b"/nix/store/"


def store_paths(root: Root) -> list[str]:
    """One sentence a file or link that holds the store's path followed by what looks like a hash."""
    linked = [
        f"layer {each.layer}, {each.entry.path}: links to {each.entry.target}"
        for each in root.all
        if each.entry.target.startswith(_STORE.decode())
    ]
    held = [
        f"layer {each.layer}, {each.entry.path}: holds {text}"
        for each in root.files
        if each.entry.size >= len(_STORE) and (text := _first(each.file))
    ]
    return linked + held


def _first(file: Path) -> str:
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_STORE)
        while at >= 0:
            name = data[at + len(_STORE) : at + len(_STORE) + 32]
            if len(name) == 32 and name.isalnum():
                return (_STORE + name).decode()
            at = data.find(_STORE, at + 1)
    return ""

"""No file contains a path of the Nix store: the image would depend on the machine that built it."""

import mmap
from pathlib import Path

from agentbox.host.image.check.layers import ImageRoot

_STORE = b"/nix/store/"


def store_references(root: ImageRoot) -> list[str]:
    """Report files and links with a store path followed by something like a hash."""
    linked = [
        f"layer {placed.layer}, {placed.entry.path}: links to {placed.entry.target}"
        for placed in root.entries
        if placed.entry.target.startswith(_STORE.decode())
    ]
    containing = [
        f"layer {each.layer}, {each.entry.path}: contains {text}"
        for each in root.files
        if each.entry.size >= len(_STORE) and (text := _first_reference(each.file))
    ]
    return linked + containing


def _first_reference(file: Path) -> str:
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offset = data.find(_STORE)
        while offset >= 0:
            name = data[offset + len(_STORE) : offset + len(_STORE) + 32]
            if len(name) == 32 and name.isalnum():
                return (_STORE + name).decode()
            offset = data.find(_STORE, offset + 1)
    return ""

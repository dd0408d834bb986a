"""A path of a layer. The Nix store keeps no mode, owner or set-id bit, so the list of entries is
authoritative.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self

from agentbox.core.canonical import canonical_json
from agentbox.core.frozen import frozen

Kind = Literal["dir", "file", "link"]


@frozen
class TreeEntry:
    """A path as in the image. `owner` is the origin: `deb:git`, `wheel:uvicorn`, `source:agentbox`,
    `generated:<what>`; "" for a directory, which layers and packages share.
    """

    path: str  # no leading slash
    type: Kind
    mode: int
    uid: int = 0
    gid: int = 0
    size: int = 0
    sha256: str = ""
    target: str = ""
    owner: str = ""

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Self:
        # written by write_entries, from the same fields
        return cls(**data)  # type: ignore[arg-type]


def sort_key(entry: TreeEntry) -> bytes:
    """By bytes, so that parents come first."""
    return entry.path.encode()


def write_entries(entries: list[TreeEntry], file: Path) -> None:
    """Writes `tree.json` in canonical form: equal trees have equal bytes."""
    file.write_bytes(canonical_json([asdict(entry) for entry in sorted(entries, key=sort_key)]))


def read_entries(file: Path) -> list[TreeEntry]:
    """Reads the output of `write_entries`."""
    return [TreeEntry.from_json(row) for row in json.loads(file.read_bytes())]

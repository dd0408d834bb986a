"""The Nix archive form of a folder, hashed without Nix (Dolstra's thesis, figure 5.2): what a recursive hash is of."""

import hashlib
from pathlib import Path
from typing import Protocol


class _Sink(Protocol):
    def update(self, data: bytes, /) -> None: ...


def nar_sha256(path: Path) -> str:
    """`sha256:<hex>` of a file or folder, equal to `nix hash path --base16`. Links are hashed, not followed."""
    found = hashlib.sha256()
    _text(found, b"nix-archive-1")
    _node(found, path)
    return f"sha256:{found.hexdigest()}"


def _text(sink: _Sink, data: bytes) -> None:
    sink.update(len(data).to_bytes(8, "little"))
    sink.update(data + bytes(-len(data) % 8))


def _node(sink: _Sink, path: Path) -> None:
    _text(sink, b"(")
    _text(sink, b"type")
    if path.is_symlink():
        _text(sink, b"symlink")
        _text(sink, b"target")
        _text(sink, str(path.readlink()).encode())
    elif path.is_dir():
        _folder(sink, path)
    else:
        _file(sink, path)
    _text(sink, b")")


def _folder(sink: _Sink, path: Path) -> None:
    _text(sink, b"directory")
    for child in sorted(path.iterdir(), key=lambda child: child.name.encode()):
        _text(sink, b"entry")
        _text(sink, b"(")
        _text(sink, b"name")
        _text(sink, child.name.encode())
        _text(sink, b"node")
        _node(sink, child)
        _text(sink, b")")


def _file(sink: _Sink, path: Path) -> None:
    _text(sink, b"regular")
    if path.stat().st_mode & 0o100:
        _text(sink, b"executable")
        _text(sink, b"")
    _text(sink, b"contents")
    _text(sink, path.read_bytes())

"""The Nix archive format of a directory, hashed without Nix (Dolstra's thesis, figure 5.2), for
recursive hashes.
"""

import hashlib
from pathlib import Path
from typing import Protocol


class _Sink(Protocol):
    def update(self, data: bytes, /) -> None: ...


def nar_sha256(path: Path) -> str:
    """Return `sha256:<hex>` of a file or directory, equal to `nix hash path --base16`. Links are
    not followed.
    """
    hasher = hashlib.sha256()
    _write_string(hasher, b"nix-archive-1")
    _write_node(hasher, path)
    return f"sha256:{hasher.hexdigest()}"


def _write_string(sink: _Sink, data: bytes) -> None:
    sink.update(len(data).to_bytes(8, "little"))
    sink.update(data + bytes(-len(data) % 8))


def _write_node(sink: _Sink, path: Path) -> None:
    _write_string(sink, b"(")
    _write_string(sink, b"type")
    if path.is_symlink():
        _write_string(sink, b"symlink")
        _write_string(sink, b"target")
        _write_string(sink, str(path.readlink()).encode())
    elif path.is_dir():
        _write_directory(sink, path)
    else:
        _write_file(sink, path)
    _write_string(sink, b")")


def _write_directory(sink: _Sink, path: Path) -> None:
    _write_string(sink, b"directory")
    for child in sorted(path.iterdir(), key=lambda child: child.name.encode()):
        _write_string(sink, b"entry")
        _write_string(sink, b"(")
        _write_string(sink, b"name")
        _write_string(sink, child.name.encode())
        _write_string(sink, b"node")
        _write_node(sink, child)
        _write_string(sink, b")")


def _write_file(sink: _Sink, path: Path) -> None:
    _write_string(sink, b"regular")
    if path.stat().st_mode & 0o100:
        _write_string(sink, b"executable")
        _write_string(sink, b"")
    _write_string(sink, b"contents")
    _write_string(sink, path.read_bytes())

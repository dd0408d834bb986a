"""A layer: the compressed tar of a tree. `python -m agentbox.host.image.oci.layer TREE LIST OUT`.

Equal files with equal owner and mode are stored once; the others are hard links to the first.

OUT becomes a directory of `layer.tar.gz` and `layer.json`: `digest` and `size` of the compressed
bytes, `diff_id` of the tar, both as `sha256:<hex>`.
"""

import hashlib
import io
import sys
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

from agentbox.core.canonical import canonical_json
from agentbox.host.image.tree.entry import TreeEntry, read_entries, sort_key

_LEVEL = 6
_GZIP = 31  # wbits of zlib: a gzip header with time 0 and no name
_MTIME = 1
_BLOCK = 1 << 20
# bytes: one block of most file systems; a link to a smaller file saves nothing
_MIN_LINKED_SIZE = 4096


class CompressedWriter(io.RawIOBase):
    """A writer that compresses, and hashes the data before and after."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._zip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self.tar_hash, self.gzip_hash = hashlib.sha256(), hashlib.sha256()
        self.length, self.size = 0, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.length

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile gives bytes
        self.tar_hash.update(data)
        self.length += len(data)
        self._emit(self._zip.compress(data))
        return len(data)

    def finish(self) -> None:
        """Flushes the compressor."""
        self._emit(self._zip.flush())

    def _emit(self, data: bytes) -> None:
        self.gzip_hash.update(data)
        self.size += len(data)
        self._out.write(data)


def write_layer(entries: list[TreeEntry], root: Path, out: BinaryIO) -> dict[str, object]:
    """Packs the entries in byte order of their paths. Returns the descriptor."""
    sink = CompressedWriter(out)
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT, bufsize=_BLOCK) as tar:
        stored: dict[tuple[object, ...], str] = {}
        for entry in sorted(entries, key=sort_key):
            _add(tar, entry, root, _first_equal(stored, entry))
    sink.finish()
    return {
        "digest": f"sha256:{sink.gzip_hash.hexdigest()}",
        "diff_id": f"sha256:{sink.tar_hash.hexdigest()}",
        "size": sink.size,
    }


def _first_equal(stored: dict[tuple[object, ...], str], entry: TreeEntry) -> str:
    """Return the path of the file to hard link to; the own path for the first one."""
    if entry.type != "file" or entry.size < _MIN_LINKED_SIZE:
        return entry.path
    return stored.setdefault((entry.sha256, entry.mode, entry.uid, entry.gid), entry.path)


def _add(tar: tarfile.TarFile, entry: TreeEntry, root: Path, first: str) -> None:
    info = tarfile.TarInfo(entry.path)
    info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, _MTIME
    if first != entry.path:
        info.type, info.linkname = tarfile.LNKTYPE, first
        tar.addfile(info)
        return
    if entry.type == "file":
        info.size = entry.size
        with (root / entry.path).open("rb") as stream:
            tar.addfile(info, stream)
        return
    info.type = tarfile.DIRTYPE if entry.type == "dir" else tarfile.SYMTYPE
    info.linkname = entry.target
    tar.addfile(info)


def main(tree: str, list_file: str, out: str) -> None:
    directory = Path(out)
    directory.mkdir()
    with (directory / "layer.tar.gz").open("wb") as stream:
        descriptor = write_layer(read_entries(Path(list_file)), Path(tree), stream)
    (directory / "layer.json").write_bytes(canonical_json(descriptor))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Reads single files from a .deb: an `ar` archive (common form) with `data.tar` in one of three
compressions.
"""

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentbox.host.packages.errors import FetchError

_MAGIC = b"!<arch>\n"
_HEADER = 60


def ar_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each member of an `ar` archive. Raises ValueError if it is invalid
    or truncated.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("not an ar archive")
    offset = len(_MAGIC)
    while offset < len(data):
        header = data[offset : offset + _HEADER]
        if len(header) < _HEADER or header[58:] != b"`\n":
            raise ValueError("invalid ar header")
        name, size = header[:16].decode().rstrip(" /"), int(header[48:58])
        offset += _HEADER
        if offset + size > len(data):
            raise ValueError(f"{name} is truncated")
        yield name, data[offset : offset + size]
        offset += size + size % 2


def extract(deb: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Return the content of the first file of each base name. Raises FetchError if the package
    lacks one.
    """
    missing = set(names)
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_data_tar(deb.read_bytes()))) as archive:
            for item in archive:
                name = item.name.rpartition("/")[2]
                if name in missing and item.isreg():
                    stream = archive.extractfile(item)
                    assert stream is not None
                    contents[name] = stream.read()
                    missing.discard(name)
    except (ValueError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise FetchError(f"cannot unpack {deb.name}: {error}") from error
    if missing:
        raise FetchError(f"cannot unpack {deb.name}: it has no {', '.join(sorted(missing))}")
    return contents


def _data_tar(deb: bytes) -> bytes:
    for name, content in ar_members(deb):
        if name == "data.tar":
            return content
        if name == "data.tar.xz":
            return lzma.decompress(content)
        if name == "data.tar.gz":
            return zlib.decompress(content, wbits=31)
    raise ValueError("no data.tar, .xz or .gz in the archive")

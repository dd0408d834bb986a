"""Reads a Debian binary package: an `ar` archive of a version, a control tar and a data tar (deb(5))."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from agentbox.errors import AgentboxError

_MAGIC = b"!<arch>\n"
_HEADER = 60  # name 16, time 12, uid 6, gid 6, mode 8, size 10, end 2 (ar(5))


def members(package: bytes, name: str) -> dict[str, bytes]:
    """The members of the outer archive by name. Raises AgentboxError when the bytes are no such archive."""
    if not package.startswith(_MAGIC):
        raise AgentboxError(f"cannot read {name}: it is no Debian package")
    found: dict[str, bytes] = {}
    at = len(_MAGIC)
    while at + _HEADER <= len(package):
        header = package[at : at + _HEADER]
        size = int(header[48:58])
        found[header[:16].decode("ascii").strip().rstrip("/")] = package[at + _HEADER : at + _HEADER + size]
        at += _HEADER + size + size % 2
    return found


def open_tar(package: Path, part: str) -> tarfile.TarFile:
    """The tar `control` or `data` of a package. Raises AgentboxError for an unknown compression."""
    name = package.name
    for member, content in members(package.read_bytes(), name).items():
        if member.startswith(f"{part}.tar"):
            try:
                return tarfile.open(fileobj=io.BytesIO(content), mode="r:*")  # the caller closes it
            except tarfile.ReadError as error:
                raise AgentboxError(f"cannot read {member} of {name}: {error}") from error
    raise AgentboxError(f"cannot read {name}: it has no {part}.tar")


def control(package: Path) -> str:
    """The control stanza, as the package states it."""
    with open_tar(package, "control") as tar:
        stream = tar.extractfile("./control")
        if stream is None:
            raise AgentboxError(f"cannot read {package.name}: its control file is not a file")
        return stream.read().decode()


def contents(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Each member of the data tar with its bytes; hard links come as the file they name."""
    with open_tar(package, "data") as tar:
        for info in tar:
            stream = tar.extractfile(info) if info.isreg() or info.islnk() else None
            yield info, stream.read() if stream else b""

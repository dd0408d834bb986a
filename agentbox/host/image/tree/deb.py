"""Reads a Debian binary package: an `ar` archive of a version, a control tar and a data tar
(deb(5)).
"""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.packages.apt.deb import ar_members


def open_tar(package: Path, name: str) -> tarfile.TarFile:
    """Open the tar `control` or `data` of a package. Raises AgentboxError for an invalid or
    differently compressed file.
    """
    try:
        for member, content in ar_members(package.read_bytes()):
            if member.startswith(f"{name}.tar"):
                return tarfile.open(fileobj=io.BytesIO(content), mode="r:*")  # the caller closes it
    except (ValueError, tarfile.ReadError) as error:
        raise AgentboxError(f"cannot read {package.name}: {error}") from error
    raise AgentboxError(f"cannot read {package.name}: it has no {name}.tar")


def control(package: Path) -> str:
    """Return the control stanza of the package."""
    with open_tar(package, "control") as tar:
        stream = tar.extractfile("./control")
        if stream is None:
            raise AgentboxError(f"cannot read {package.name}: its control file is not a file")
        return stream.read().decode()


def contents(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield each member of the data tar with its bytes; hard links have the bytes of their
    target.
    """
    with open_tar(package, "data") as tar:
        for info in tar:
            stream = tar.extractfile(info) if info.isreg() or info.islnk() else None
            yield info, stream.read() if stream else b""

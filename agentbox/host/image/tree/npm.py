"""Adds npm tarballs to the tree: unpacked below `/opt/agentbox/npm/<feature>`, without running
scripts (npm-pack's format: one top directory of any name).
"""

import json
import struct
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree import paths_and_modes
from agentbox.host.image.tree.assemble import Tree

_ROOT = "opt/agentbox/npm"
_MANIFEST = "package.json"
_ELF_MACHINES = {"amd64": 62, "arm64": 183}  # e_machine, <elf.h>


def add_tarball(tree: Tree, name: str, file: Path, paths: Sequence[str], arch: str) -> None:
    """Unpacks one package to each of its paths. Files in `bin` become executable, as with npm; an
    ELF file for another machine than `arch` is left out: some packages have one for each. Raises
    AgentboxError for links and devices, which npm never packs.
    """
    owner = f"npm:{name}"
    files = dict(_files(file))
    commands = _commands(files.get(_MANIFEST, (b"{}", False))[0], file)
    for inside, (data, executable) in files.items():
        if _is_foreign(data, arch):
            continue
        for path in paths:
            tree.file(
                f"{_ROOT}/{path}/{inside}",
                data,
                owner,
                0o755 if executable or inside in commands else 0o644,
            )


def _files(file: Path) -> Iterator[tuple[str, tuple[bytes, bool]]]:
    """Yield path within the package -> bytes, and whether the packer made it executable."""
    with tarfile.open(file, mode="r:gz") as tar:
        for info in tar:
            inside = paths_and_modes.relative_path("/".join(info.name.split("/")[1:]))
            stream = tar.extractfile(info) if info.isreg() else None
            if not inside or info.isdir():
                continue
            if stream is None:
                raise AgentboxError(f"cannot unpack {info.name} of {file.name}: not a regular file")
            yield inside, (stream.read(), bool(info.mode & 0o111))


def _commands(manifest: bytes, file: Path) -> frozenset[str]:
    """Return the files in `bin` of a package.json: one string, or a table."""
    try:
        declared: Any = json.loads(manifest).get("bin", {})
    except ValueError as error:
        raise AgentboxError(
            f"cannot unpack {file.name}: {_MANIFEST} is not valid JSON ({error})"
        ) from error
    paths = [declared] if isinstance(declared, str) else declared.values()
    return frozenset(paths_and_modes.relative_path(path) for path in paths)


def _is_foreign(data: bytes, arch: str) -> bool:
    if not data.startswith(b"\x7fELF") or len(data) < 20:
        return False
    return int(struct.unpack_from("<H", data, 18)[0]) != _ELF_MACHINES[arch]

"""npm tarballs into the tree: unpacked below `/opt/agentbox/npm/<feature>`, no script run (npm-pack's form: everything
lies in one top folder, whatever its name)."""

import tarfile
from collections.abc import Sequence
from pathlib import Path

from agentbox.errors import AgentboxError
from agentbox.image.tree import rules
from agentbox.image.tree.assemble import Tree

_ROOT = "opt/agentbox/npm"


def add_tarball(tree: Tree, name: str, file: Path, paths: Sequence[str]) -> None:
    """Unpacks one package to each of its places. Raises AgentboxError for links and devices, which npm never packs."""
    owner = f"npm:{name}"
    with tarfile.open(file, mode="r:gz") as tar:
        for info in tar:
            inside = rules.inside("/".join(info.name.split("/")[1:]))
            stream = tar.extractfile(info) if info.isreg() else None
            if not inside or info.isdir():
                continue
            if stream is None:
                raise AgentboxError(f"cannot unpack {info.name} of {file.name}: it is no regular file")
            data = stream.read()
            for place in paths:
                tree.file(f"{_ROOT}/{place}/{inside}", data, owner, 0o755 if info.mode & 0o111 else 0o644)

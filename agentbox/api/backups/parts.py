"""What a backup takes besides the slots: stores of other programs, and files of the volumes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentbox.core.files.copying import file_sizes
from agentbox.core.files.walking import Skip
from agentbox.core.paths import Paths

_SQLITE: Final = (".db", ".db-wal", ".db-shm", ".db-journal")
_TEMPORARY: Final = (".new", ".tmp")
_ACCESS: Final = "secrets/access.db"
# Stores below the state folder by part. A store that does not exist is no error: no program of this
# box has one.
_STORES: Final[dict[str, tuple[str, ...]]] = {
    "agents": (
        "orchestrator/agents.db",
        "gateway/budgets.db",
        "sessions/sessions.db",
        "mcp-host/mcp.db",
    ),
    "access": (_ACCESS,),
    "identities": ("mesh/sessions.db", "mesh/outbox.db"),
}
_TREES: Final[dict[str, tuple[str, ...]]] = {
    "agents": ("orchestrator", "tasks", "sessions", "mcp-host"),
    "identities": ("mesh",),
    "secrets": ("secrets",),
}
_GROWING: Final = "orchestrator"  # output of agents: files that only grow
FOREIGN: Final = ("agents",)  # stores that other programs write: their moment is taken first


@dataclass(frozen=True)
class Tree:
    """A folder, and where it is below the staging directory. `growing`: files are copied up to the
    lengths that were noted at the cut.
    """

    source: Path
    target: str
    growing: bool = False
    skip: Skip = lambda _path: False

    def size(self) -> int:
        """Bytes of its files."""
        return sum(file_sizes(self.source, self.skip).values())


def store_paths(paths: Paths, include: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Existing stores, each with its path below the state folder; those of other programs first."""
    ordered = (*FOREIGN, *(part for part in _STORES if part not in FOREIGN))
    for part in ordered:
        if part in include:
            for name in _STORES[part]:
                path = paths.state / name
                if path.is_file() and not path.is_symlink():
                    yield name, path


def trees(paths: Paths, include: Collection[str]) -> Iterator[Tree]:
    """The folders of the parts. Stores are copied by themselves, never as files."""
    for part, names in _TREES.items():
        if part in include:
            for name in names:
                yield Tree(
                    paths.state / name, f"state/{name}", growing=name == _GROWING, skip=is_store
                )
    if "agents" in include:
        yield Tree(paths.branches, "branches")
    if "workspace" in include:
        yield Tree(paths.workspace, "workspace")


def is_store(path: str) -> bool:
    """Whether a path is of a store, of a file beside one, or of a file that is being written."""
    return path.endswith((*_SQLITE, *_TEMPORARY))


def box_files(paths: Paths, plan: bytes) -> Iterator[tuple[str, Path | bytes]]:
    """What is always in a snapshot: manifest, lock, build record and the plan in force, each with
    its name below `box/`.
    """
    manifest = paths.manifest if paths.manifest.is_file() else paths.baked_manifest
    for name, path in (
        ("agentbox.toml", manifest),
        ("agentbox.lock", paths.lock),
        ("build.json", paths.build_record),
    ):
        if path.is_file():
            yield name, path
    yield "plan.json", plan

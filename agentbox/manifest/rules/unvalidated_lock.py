"""The lock as input of rules: loaded, missing, or (None) not given. Not validated, so that rules
can report problems.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode

LOCK_FILE: Final = "agentbox.lock"
FLAKE_FILE: Final = "flake.lock"


@dataclass(frozen=True)
class UnvalidatedLock:
    """`tables` is the document of agentbox.lock, `flake` that of flake.lock (None = absent)."""

    present: bool
    tables: Mapping[str, Any] = field(default_factory=dict)
    flake: Mapping[str, Any] | None = None

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures in the lock."""
        return tuple(self.tables.get("debian", {}))

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """All entries with the name of their table."""
        for table in ("seed", "debian"):
            for architecture, packages in self.tables.get(table, {}).items():
                yield from ((f"{table}.{architecture}", row) for row in packages.get("files", ()))
        for table in ("wheels", "npm"):
            yield from ((table, row) for row in self.tables.get(table, {}).get("files", ()))

    def names(self, table: str) -> frozenset[str]:
        """The package names of a table."""
        return frozenset(
            str(row.get("name", "")) for table_name, row in self.rows() if table_name == table
        )

    @property
    def nixpkgs_hash(self) -> str:
        """The hash of the nixpkgs input of flake.lock; "" without one."""
        nodes = (self.flake or {}).get("nodes", {})
        name = nodes.get("root", {}).get("inputs", {}).get("nixpkgs", "")
        return str(nodes.get(name, {}).get("locked", {}).get("narHash", ""))


MISSING: Final = UnvalidatedLock(present=False)


def read_lock(path: Path) -> UnvalidatedLock:
    """The lock at that path and the flake.lock beside it. Raises AgentboxError (exit 2) if one
    cannot be read.
    """
    tables = _document(path, tomllib.loads)
    return UnvalidatedLock(
        present=tables is not None,
        tables=tables or {},
        flake=_document(path.with_name(FLAKE_FILE), json.loads),
    )


def _document(path: Path, parse: Callable[[str], Any]) -> Mapping[str, Any] | None:
    try:
        document: Mapping[str, Any] = parse(path.read_text(encoding="utf-8"))
        return document
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        command = "nix flake lock" if path.name == FLAKE_FILE else "agentbox lock"
        raise AgentboxError(
            f"cannot read {path}: {error}",
            f"Run `{command}` to write it again.",
            exit_code=ExitCode.USAGE,
        ) from error

"""The lock as rules see it: loaded, missing, or (None) not given. Read loosely, so that a rule can say what is wrong."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentbox.errors import AgentboxError, ExitCode

LOCK_FILE: Final = "agentbox.lock"


@dataclass(frozen=True)
class LockInput:
    """`tables` is the document of agentbox.lock."""

    present: bool
    tables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def architectures(self) -> tuple[str, ...]:
        """Those that the lock has packages for."""
        return tuple(self.tables.get("debian", {}))

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every entry with the table that it stands in."""
        for table in ("seed", "debian"):
            for architecture, part in self.tables.get(table, {}).items():
                yield from ((f"{table}.{architecture}", row) for row in part.get("files", ()))
        for table in ("wheels", "npm"):
            yield from ((table, row) for row in self.tables.get(table, {}).get("files", ()))

    def names(self, table: str) -> frozenset[str]:
        """The package names of a table."""
        return frozenset(str(row.get("name", "")) for at, row in self.rows() if at == table)


MISSING: Final = LockInput(present=False)


def read_lock(path: Path) -> LockInput:
    """The lock at that path; `MISSING` when there is none. Raises AgentboxError (exit 2) when it is no TOML document."""
    try:
        return LockInput(present=True, tables=tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return MISSING
    except (OSError, ValueError) as error:
        raise AgentboxError(
            f"cannot read {path}: {error}", "Run `agentbox lock` to write it anew.", exit_code=ExitCode.USAGE
        ) from error

"""What `pyproject.toml` says the application itself needs."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from agentbox.errors import AgentboxError, ExitCode


@dataclass(frozen=True)
class Project:
    """Requirements as written: of the box, of the operator's command line, of the tests. Sorted."""

    runtime: tuple[str, ...]
    host: tuple[str, ...]
    test: tuple[str, ...]


def read_project(checkout: Path) -> Project:
    """Raises AgentboxError (exit 2) when the file cannot be used."""
    path = checkout / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        extras = table["optional-dependencies"]
        return Project(_listed(table["dependencies"]), _listed(extras["host"]), _listed(extras["test"]))
    except (OSError, ValueError, KeyError) as error:
        raise AgentboxError(
            f"cannot read {path}: {error}", "Run the command from a checkout.", exit_code=ExitCode.USAGE
        ) from error


def _listed(rows: list[str]) -> tuple[str, ...]:
    return tuple(sorted(rows))

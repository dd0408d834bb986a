"""The requirements of the application in `pyproject.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode


@dataclass(frozen=True)
class ProjectRequirements:
    """Requirements as written: of the box, of the operator's command line, of
    `agentbox mcp`, of the tests. Sorted.

    `unused` lists, per distribution, dependencies that agentbox never imports: they are not locked.
    """

    runtime: tuple[str, ...]
    host: tuple[str, ...]
    mcp: tuple[str, ...]
    test: tuple[str, ...]
    unused: Mapping[str, tuple[str, ...]]


def read_project(checkout: Path) -> ProjectRequirements:
    """Raises AgentboxError (exit 2) if the file cannot be used."""
    path = checkout / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        table = document["project"]
        extras, settings = (
            table["optional-dependencies"],
            document.get("tool", {}).get("agentbox", {}),
        )
        return ProjectRequirements(
            _sorted_tuple(table["dependencies"]),
            _sorted_tuple(extras["host"]),
            _sorted_tuple(extras["mcp"]),
            _sorted_tuple(extras["test"]),
            {
                name: _sorted_tuple(rows)
                for name, rows in settings.get("unused-dependencies", {}).items()
            },
        )
    except (OSError, ValueError, KeyError) as error:
        raise AgentboxError(
            f"cannot read {path}: {error}",
            "Run the command from a checkout.",
            exit_code=ExitCode.USAGE,
        ) from error


def _sorted_tuple(rows: list[str]) -> tuple[str, ...]:
    return tuple(sorted(rows))

"""Where the value of a named secret comes from on the operator's machine. Values are never printed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import environment


def collect(names: Iterable[str], manifest: Path) -> dict[str, str]:
    """Each name from the environment, else from the `.env` beside the manifest; absent ones are left out."""
    written = read_env_file(manifest.parent / ".env")
    here = environment()
    return {name: value for name in names if (value := here.get(name) or written.get(name, ""))}


def read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` lines; quotes around a value go, `#` lines and blank ones are passed over. No file: no names.

    Raises AgentboxError (exit 2) for any other line, naming its number and not its text.
    """
    if not path.exists():
        return {}
    found: dict[str, str] = {}
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise AgentboxError(
                f"cannot read {path}: line {number} is not NAME=value",
                "Mend or remove that line.",
                exit_code=ExitCode.USAGE,
            )
        found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value

"""Where the value of a named secret comes from on the operator's machine. Values are never printed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import told, write_atomically
from agentbox.core.paths import environment
from agentbox.host.engines.sudo_user import hand_over, make_folder

Source = Literal["environment", ".env", "set"]


def collect(names: Collection[str], manifest: Path, kept: Path) -> dict[str, str]:
    """Each name from the environment, else from the `.env` beside the manifest, else from the folder of `secrets set`;
    absent ones are left out. Raises AgentboxError for one that is no text."""
    written = read_env_file(manifest.parent / ".env")
    here = {name: _valid(name, value) for name in names if (value := environment().get(name))}
    found = ((name, here.get(name) or written.get(name) or recall(kept, name)) for name in names)
    return {name: value for name, value in found if value}


def source_of(name: str, manifest: Path, kept: Path) -> Source | None:
    """Where `collect` takes a value from, None where there is none."""
    if environment().get(name):
        return "environment"
    if read_env_file(manifest.parent / ".env").get(name):
        return ".env"
    return "set" if recall(kept, name) else None


def keep(folder: Path, name: str, value: str) -> None:
    """Writes a secret, 0600 in a 0700 folder of the caller's. Raises AgentboxError (exit 3)."""
    with told(f"make {folder}"):
        make_folder(folder)
    write_atomically(folder / name, value)
    with told(f"write {folder / name}"):
        hand_over(folder)


def recall(folder: Path, name: str) -> str:
    """The value that was kept, "" where there is none. Raises AgentboxError (exit 3)."""
    path = folder / name
    with told(f"read {path}"):
        return _text(path) if path.is_file() else ""


def kept_names(folder: Path) -> tuple[str, ...]:
    """Sorted. Raises AgentboxError (exit 3)."""
    with told(f"read {folder}"):
        return tuple(sorted(path.name for path in folder.glob("[!.]*"))) if folder.is_dir() else ()


def forget(folder: Path, name: str) -> bool:
    """Removes a secret that was kept; False where there is none. Raises AgentboxError (exit 3)."""
    path = folder / name
    with told(f"remove {path}"):
        if not path.is_file():
            return False
        path.unlink()
        return True


def read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` lines; quotes around a value go, `#` lines and blank ones are passed over. No file: no names.

    Raises AgentboxError (exit 2) for any other line, naming its number and not its text.
    """
    if not path.exists():
        return {}
    found: dict[str, str] = {}
    for number, raw in enumerate(_text(path).splitlines(), 1):
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


def _valid(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise AgentboxError(
            f"cannot use {name} of the environment: it is not valid UTF-8", "Set it again.", exit_code=ExitCode.USAGE
        ) from None
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise AgentboxError(
            f"cannot read {path}: it is not valid UTF-8", "Write it again.", exit_code=ExitCode.USAGE
        ) from None


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value

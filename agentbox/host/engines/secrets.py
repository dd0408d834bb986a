"""The sources of secret values on the operator's machine. Values are never printed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.paths import environment

SecretSource = Literal["environment", ".env", "set"]


def collect_secrets(names: Collection[str], manifest: Path, store: Path) -> dict[str, str]:
    """Read each name from the environment, else from the `.env` beside the manifest, else from the
    directory of `secrets set`; missing ones are omitted. Raises AgentboxError for a value that is
    not text.
    """
    from_file = read_env_file(manifest.parent / ".env")
    from_environment = {
        name: _require_utf8(name, value) for name in names if (value := environment().get(name))
    }
    values = (
        (name, from_environment.get(name) or from_file.get(name) or read_secret(store, name))
        for name in names
    )
    return {name: value for name, value in values if value}


def secret_source(name: str, manifest: Path, store: Path) -> SecretSource | None:
    """Return where `collect_secrets` gets a value from, None if there is none."""
    if environment().get(name):
        return "environment"
    if read_env_file(manifest.parent / ".env").get(name):
        return ".env"
    return "set" if read_secret(store, name) else None


def store_secret(directory: Path, name: str, value: str) -> None:
    """Writes a secret, 0600 in a 0700 directory of the caller. Raises AgentboxError (exit 3)."""
    from agentbox.host.engines.sudo_user import chown_tree, make_directory

    with wrap_os_errors(f"make {directory}"):
        make_directory(directory)
    write_atomically(directory / name, value)
    with wrap_os_errors(f"write {directory / name}"):
        chown_tree(directory)


def read_secret(directory: Path, name: str) -> str:
    """Return the stored value, "" if there is none. Raises AgentboxError (exit 3)."""
    path = directory / name
    with wrap_os_errors(f"read {path}"):
        return _read_text(path) if path.is_file() else ""


def stored_names(directory: Path) -> tuple[str, ...]:
    """Return the sorted names. Raises AgentboxError (exit 3)."""
    with wrap_os_errors(f"read {directory}"):
        return (
            tuple(sorted(path.name for path in directory.glob("[!.]*")))
            if directory.is_dir()
            else ()
        )


def remove_secret(directory: Path, name: str) -> bool:
    """Removes a stored secret; False if there is none. Raises AgentboxError (exit 3)."""
    path = directory / name
    with wrap_os_errors(f"remove {path}"):
        if not path.is_file():
            return False
        path.unlink()
        return True


def read_env_file(path: Path) -> dict[str, str]:
    """Parse `NAME=value` lines; quotes around a value are removed, blank and `#` lines skipped. No
    file: no names.

    Raises AgentboxError (exit 2) for any other line, with its number and without its text.
    """
    if not path.exists():
        return {}
    values: dict[str, str] = {}
    for number, raw in enumerate(_read_text(path).splitlines(), 1):
        line = raw.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise AgentboxError(
                f"cannot read {path}: line {number} is not NAME=value",
                "Fix or remove that line.",
                exit_code=ExitCode.USAGE,
            )
        values[name.strip()] = _unquote(value.strip())
    return values


def _require_utf8(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise AgentboxError(
            f"cannot use {name} of the environment: it is not valid UTF-8",
            "Set it again.",
            exit_code=ExitCode.USAGE,
        ) from None
    return value


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise AgentboxError(
            f"cannot read {path}: it is not valid UTF-8",
            "Write it again.",
            exit_code=ExitCode.USAGE,
        ) from None


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value

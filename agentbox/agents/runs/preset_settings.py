"""Writes the settings of an agent CLI into the HOME of an agent, before each of its starts.

Earlier generations of the agent could write everywhere in HOME: no link is followed, and what is
in the way of a settings file is removed.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import tomli_w

from agentbox.agents.runs import home

if TYPE_CHECKING:
    from agentbox.manifest.features.presets import Preset

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def render_settings(preset: "Preset", *, gateway: str, model: str) -> Mapping[str, bytes]:
    """The content of each settings file by its path relative to HOME. `gateway` and `model` are
    URLs.
    """
    values = {"{gateway}": gateway, "{model}": model}
    return {
        name: _encode(PurePosixPath(name).suffix, _fill(content, values))
        for name, content in preset.files.items()
    }


def write_settings(home_dir: Path, files: Mapping[str, bytes]) -> None:
    """Write each file with mode 0600. Raises OSError."""
    for name, content in files.items():
        *directories, last = PurePosixPath(name).parts
        descriptor = os.open(home_dir, _DIRECTORY_FLAGS)
        try:
            parent = home_dir
            for directory in directories:
                parent /= directory
                inner = _enter(descriptor, directory, parent)
                os.close(descriptor)
                descriptor = inner
            _replace(descriptor, last, content, parent / last)
        finally:
            os.close(descriptor)


def _enter(parent_fd: int, name: str, path: Path) -> int:
    """A descriptor of that directory, which is made if it is missing or something else."""
    try:
        descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent_fd)
        os.fchmod(descriptor, 0o700)
        return descriptor
    except FileNotFoundError:
        pass
    except OSError:  # a link, a file, or a directory without permissions
        _remove(parent_fd, name, path)
    os.mkdir(name, 0o700, dir_fd=parent_fd)
    return os.open(name, _DIRECTORY_FLAGS, dir_fd=parent_fd)


def _replace(parent_fd: int, name: str, content: bytes, path: Path) -> None:
    temporary = f".{secrets.token_hex(8)}"
    descriptor = os.open(temporary, _NEW_FILE_FLAGS, 0o600, dir_fd=parent_fd)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    try:
        os.rename(temporary, name, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)
    except IsADirectoryError:
        _remove(parent_fd, name, path)
        os.rename(temporary, name, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)


def _remove(parent_fd: int, name: str, path: Path) -> None:
    """Remove that entry. No agent runs meanwhile that could replace what `path` names."""
    try:
        os.unlink(name, dir_fd=parent_fd)
    except IsADirectoryError:
        home.remove(path)


def _encode(suffix: str, content: Mapping[str, Any]) -> bytes:
    if suffix == ".toml":
        return tomli_w.dumps(content).encode()
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    """The same data with the values of the box in its texts."""
    if isinstance(value, Mapping):
        return {key: _fill(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, values) for item in value]
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(name, text)
    return value

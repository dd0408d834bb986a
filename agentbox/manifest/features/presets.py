"""Presets of agent CLIs (`config/agents/<preset>.toml`): settings that agent-host writes into the
HOME of an agent.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen

FORMATS: Final = (".json", ".toml")
"""Suffixes of the settings files that can be written."""


@frozen
class Preset:
    """What one CLI needs to work in a box. `files`: content by path relative to HOME; the suffix is
    the format. In its texts `{gateway}` is the gateway's URL and `{model}` that of the agent's
    provider. A credential is never written: the file names the variable that has the agent's own
    token, in the CLI's own notation.
    """

    provider_kinds: tuple[str, ...]
    files: Mapping[str, Mapping[str, Any]]
    env: Mapping[str, str] = field(default_factory=dict)  # variables that are no setting
    acp_command: tuple[str, ...] = ()  # speaks the Agent Client Protocol on stdin and stdout


@cache
def presets() -> Mapping[str, Preset]:
    """All presets by name. Raises AgentboxError (exit 2) naming an invalid file."""
    from agentbox.core.records.plain import build  # most manifests have no preset

    directory = config_dir() / "agents"
    loaded: dict[str, Preset] = {}
    for path in sorted(directory.glob("*.toml")):
        try:
            preset: Preset = build(
                Preset, tomllib.loads(path.read_text(encoding="utf-8")), path.stem
            )
            _check_files(preset)
        except (OSError, ValueError) as error:
            raise AgentboxError(
                f"cannot use the preset {path}: {error}",
                "Reinstall agentbox: its data files belong beside its Python package.",
                exit_code=ExitCode.USAGE,
            ) from error
        loaded[path.stem] = preset
    return loaded


def _check_files(preset: Preset) -> None:
    """Raises ValueError for a path that leaves HOME, or that has no known format."""
    for name in preset.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.suffix not in FORMATS:
            raise ValueError(f"{name!r} is not a .json or .toml file below HOME")

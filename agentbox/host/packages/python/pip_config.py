"""The configuration of this host's pip for its main index. Extra indexes and local link directories
are ignored on purpose: a lock may only contain what the main index serves, or another host could
not fetch it.
"""

import ast
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from agentbox.core.paths import environment
from agentbox.host.packages.host_command import run

# pip's options for reaching an index (pip config reference, "General options").
_INDEX_OPTIONS = (
    "cert",
    "client-cert",
    "index-url",
    "proxy",
    "retries",
    "timeout",
    "default-timeout",
    "trusted-host",
)


@dataclass(frozen=True)
class PipConfig:
    """`index_url` may contain credentials: it is never printed or written."""

    index_url: str
    settings: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for a pip with exactly this configuration."""
        variables = {
            f"PIP_{key.upper().replace('-', '_')}": value for key, value in self.settings.items()
        }
        cleared = dict.fromkeys((name for name in environment() if name.startswith("PIP_")), "")
        return {
            **cleared,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **variables,
        }


@cache
def pip_config(python: str = sys.executable) -> PipConfig:
    """Return the configuration of a Python's pip, as `pip config list` and `pip` resolve it."""
    settings = _settings(run([python, "-m", "pip", "config", "list"]).out)
    return PipConfig(settings.get("index-url") or _default_index(python), settings)


def _settings(output: str) -> dict[str, str]:
    """Parse lines `global.index-url='…'`: a command's section overrides global, the environment
    overrides both.
    """
    ranked: dict[str, tuple[int, str]] = {}
    for line in output.splitlines():
        option, _, value = line.partition("=")
        section, _, key = option.lstrip(":").replace(":.", ".").partition(".")
        rank = {"global": 1, "install": 2, "env": 3}.get(section, 0)
        if key in _INDEX_OPTIONS and rank and rank >= ranked.get(key, (0, ""))[0]:
            ranked[key] = (rank, str(ast.literal_eval(value)))
    return {key: value for key, (_, value) in sorted(ranked.items())}


def _default_index(python: str) -> str:
    script = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return run([python, "-c", script]).out.strip()

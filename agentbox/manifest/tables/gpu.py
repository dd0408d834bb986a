"""[gpu]: the one GPU switch."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.types import key


@dataclass(frozen=True, kw_only=True)
class GpuTable:
    """The backend determines packages, devices, environment and exception."""

    backend: Literal["none", "ollama-rocm", "ollama-cuda", "local-cuda"] = key("none", "rebuild")

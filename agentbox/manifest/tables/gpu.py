"""[gpu]: the one GPU switch."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.types import key


@dataclass(frozen=True, kw_only=True)
class GpuTable:
    """Packages, devices, environment and exception follow from the backend."""

    backend: Literal["none", "ollama-rocm", "ollama-cuda", "local-cuda"] = key("none", "rebuild")

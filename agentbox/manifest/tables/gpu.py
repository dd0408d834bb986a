"""[gpu]: the one GPU switch."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.declarations.key import key


@dataclass(frozen=True, kw_only=True)
class GpuTable:
    """The one GPU switch."""

    backend: Literal["none", "ollama-rocm", "ollama-cuda", "local-cuda"] = key(
        "none", "rebuild", doc="What decides packages, devices, environment and exception."
    )

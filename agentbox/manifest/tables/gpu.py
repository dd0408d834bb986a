"""[gpu]: the one GPU switch."""

from typing import Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import key


@frozen
class GpuTable:
    """The one GPU switch."""

    backend: Literal["none", "ollama-rocm", "ollama-cuda", "local-cuda"] = key(
        "none", "rebuild", doc="What decides packages, devices, environment and exception."
    )

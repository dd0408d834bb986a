"""E019: CUDA libraries without a device."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E019", "0.1"
TITLE = "CUDA libraries without a CUDA backend"
REASON = "The libraries take gigabytes in the image and have no device to use."
READS = ("toolchains.cuda", "gpu.backend")
BAD = """
[toolchains]
cuda = true
[gpu]
backend = "ollama-cuda"
"""
GOOD = """
[toolchains]
cuda = true
[gpu]
backend = "local-cuda"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["toolchains.cuda"] and context["gpu.backend"] != "local-cuda":
        yield context.finding(
            "toolchains.cuda",
            message="the CUDA libraries would have no device: gpu.backend is "
            f'"{context["gpu.backend"]}"',
            remedy='Set gpu.backend = "local-cuda", or toolchains.cuda = false.',
            related=("gpu.backend",),
        )

"""E006: Gaussian splatting without a CUDA device."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E006", "0.1"
TITLE = "Gaussian splatting without local CUDA"
REASON = """Gaussian splatting trains on CUDA only: without a CUDA device it would fail at its first
step."""
READS = ("skills.spatial_and_3d.gaussian_splatting", "gpu.backend")
BAD = """
[skills.spatial_and_3d]
gaussian_splatting = true
"""
GOOD = """
[skills.spatial_and_3d]
gaussian_splatting = true
[gpu]
backend = "local-cuda"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    key = "skills.spatial_and_3d.gaussian_splatting"
    if context[key] and context["gpu.backend"] != "local-cuda":
        yield context.finding(
            key,
            message="Gaussian splatting trains on CUDA only, and gpu.backend is "
            f'"{context["gpu.backend"]}"',
            remedy=f'Set gpu.backend = "local-cuda", or {key} = false.',
            related=("gpu.backend",),
        )

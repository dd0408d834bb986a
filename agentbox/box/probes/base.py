"""The result of a probe and the resolution of its paths. Standard library only: Stage A runs the
suite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.plan.model import Probe


@dataclass(frozen=True)
class ProbeResult:
    """`detail` is the reason of a failure, empty when it passed."""

    id: str
    feature: str
    passed: bool
    required: bool
    ms: float
    detail: str = ""


# Returns the reason why the artifact is unusable, else an empty text. `seconds` is its time limit.
Check = Callable[[Probe, Paths, float], str]


def resolve_path(paths: Paths, path: str) -> Path:
    """Resolves a path of the box below the prefix; under the process engine other tools come from
    the host.
    """
    box_path = paths.resolve(path)
    return (
        box_path
        if paths.is_container or path.startswith(_BOX_ROOTS) or box_path.exists()
        else Path(path)
    )


_BOX_ROOTS = tuple(
    f"{root}/" for root in (Paths().app, Paths().run, Paths().state, Paths().workspace)
)

"""What a probe of an artifact answers, and where its paths lie. Standard library only: Stage A runs the suite."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.plan.model import Probe


@dataclass(frozen=True)
class ProbeResult:
    """`detail` says why it failed, empty when it passed."""

    id: str
    feature: str
    passed: bool
    required: bool
    ms: float
    detail: str = ""


# Returns why the artifact is not usable, empty when it is. `seconds` is how long it may take.
Check = Callable[[Probe, Paths, float], str]


def resolve_path(paths: Paths, path: str) -> Path:
    """A box path below the prefix where it is the box's own; under the process engine tools come from the host."""
    box_path = paths.resolve(path)
    return (
        box_path
        if paths.is_container or path.startswith(_BOX_ROOTS) or box_path.exists()
        else Path(path)
    )


_BOX_ROOTS = tuple(
    f"{root}/" for root in (Paths().app, Paths().run, Paths().state, Paths().workspace)
)

"""Where a box may write: tmpfs, volumes, and the roots that boot and `/ready` prove writable."""

from agentbox.core.paths import Paths
from agentbox.manifest.features.tmpfs import baseline
from agentbox.manifest.tables.resources import Resources
from agentbox.plan.model import Tmpfs, Volume
from agentbox.plan.names import BRANCHES, STATE, WORKSPACE

_BOX = Paths()
_RUN = str(_BOX.at("/run"))


def baseline_tmpfs(resources: Resources) -> tuple[Tmpfs, ...]:
    """The five memory file systems of every box, sorted by target. All are noexec, nosuid, nodev and owned by uid 1000."""
    rows = baseline(resources.tmp_size, resources.log_size)
    return tuple(Tmpfs(target=row.target, size=row.size.bytes, mode=row.mode) for row in rows)


def baseline_volumes() -> tuple[Volume, ...]:
    """State, then what agents fill (apart from the journal), then the workspace; a parent before what lies in it."""
    return (
        Volume(source=STATE, target=str(_BOX.state)),
        Volume(source=BRANCHES, target=str(_BOX.branches)),
        Volume(source=WORKSPACE, target=str(_BOX.workspace)),
    )


def writable_roots(tmpfs: tuple[Tmpfs, ...], volumes: tuple[Volume, ...]) -> tuple[str, ...]:
    """Every mount that must accept writes, parents first. `/run` counts through the control plane's folder in it."""
    targets = {str(_BOX.run)} | {row.target for row in tmpfs if row.target != _RUN}
    targets |= {row.target for row in volumes if not row.read_only}
    return tuple(sorted(targets))

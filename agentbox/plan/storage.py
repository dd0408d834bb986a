"""Writable locations of a box: tmpfs, volumes, the roots that boot and `/ready` test for writing,
and the sizes of logs.
"""

from collections.abc import Sequence
from dataclasses import replace

from agentbox.core.paths import Paths
from agentbox.manifest.features.tmpfs import baseline_mounts
from agentbox.manifest.tables.resources import ResourcesTable
from agentbox.plan.model import Program, TmpfsPlan, VolumePlan
from agentbox.plan.names import BRANCHES, STATE, WORKSPACE

LOG_SHARE = 0.6  # of resources.log_size for feature programs; the rest is for other logs
LOG_BACKUPS = 1
_BOX = Paths()
_RUN = str(_BOX.resolve("/run"))


def baseline_tmpfs(resources: ResourcesTable) -> tuple[TmpfsPlan, ...]:
    """The five memory file systems of every box, sorted by target. All are noexec, nosuid, nodev
    and owned by uid 1000.
    """
    rows = baseline_mounts(resources.tmp_size, resources.log_size)
    return tuple(TmpfsPlan(target=row.target, size=int(row.size), mode=row.mode) for row in rows)


def baseline_volumes(backups: str) -> tuple[VolumePlan, ...]:
    """State, branches (separate from the journal), backups (`backup.folder`: a volume or a folder
    of the host), workspace; a parent precedes its children.
    """
    return (
        VolumePlan(source=STATE, target=str(_BOX.state)),
        VolumePlan(source=BRANCHES, target=str(_BOX.branches)),
        VolumePlan(source=backups, target=str(_BOX.backups)),
        VolumePlan(source=WORKSPACE, target=str(_BOX.workspace)),
    )


def authority_volumes(ca_bundle: str) -> tuple[VolumePlan, ...]:
    """The operator's certificates, a file of the host, read-only."""
    if not ca_bundle:
        return ()
    target = str(_BOX.mounted_authorities)
    return (VolumePlan(source=ca_bundle, target=target, read_only=True),)


def writable_roots(
    tmpfs: tuple[TmpfsPlan, ...], volumes: tuple[VolumePlan, ...]
) -> tuple[str, ...]:
    """All mounts that must be writable, parents first. `/run` is tested through the control plane's
    directory in it.
    """
    targets = {str(_BOX.run)} | {row.target for row in tmpfs if row.target != _RUN}
    targets |= {row.target for row in volumes if not row.read_only}
    return tuple(sorted(targets))


def with_log_sizes(programs: Sequence[Program], log_size: int) -> tuple[Program, ...]:
    """Equal shares in bytes for all programs that log to a file, so that `/var/log` never fills up.
    Sum of `log_bytes * (log_backups + 1)` <= the share.
    """
    count = sum(program.log == "file" for program in programs)
    if not count:
        return tuple(programs)
    size = int(log_size * LOG_SHARE) // (count * (LOG_BACKUPS + 1))
    return tuple(
        replace(program, log_bytes=size, log_backups=LOG_BACKUPS)
        if program.log == "file"
        else program
        for program in programs
    )

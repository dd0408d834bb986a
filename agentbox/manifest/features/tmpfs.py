"""The memory file systems of every box. Their pages count against `resources.memory`."""

from agentbox.manifest.tables.security import TmpfsTable
from agentbox.manifest.types import Size


def baseline_mounts(tmp_size: Size, log_size: Size) -> tuple[TmpfsTable, ...]:
    """The five mounts of the baseline, sorted by target; all noexec, nosuid, nodev."""
    return (
        TmpfsTable(target="/run", size=Size("64MiB"), mode="0755"),
        TmpfsTable(target="/tmp", size=tmp_size, mode="1777"),
        TmpfsTable(target="/var/log", size=log_size, mode="0755"),
        TmpfsTable(target="/var/log/supervisor", size=Size("64MiB"), mode="0755"),
        TmpfsTable(target="/var/run", size=Size("16MiB"), mode="0755"),
    )


def total_bytes(mounts: tuple[TmpfsTable, ...]) -> int:
    """Their total size."""
    return sum(mount.size for mount in mounts)

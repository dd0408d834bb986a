"""The state of one process tree between two walks of its directories by the disk scanner."""

import os

from agentbox.policy.limits.gauge import Gauge
from agentbox.policy.limits.registry import INODE_BYTES, SCAN_SECONDS
from agentbox.sandbox.monitor.watchdog import TreeLimits


class ScannedTree:
    """What was measured of a tree, and when it must be walked again."""

    def __init__(self, limits: TreeLimits) -> None:
        self.limits = limits
        self.gauges = (Gauge("tmp", limits.tmp), Gauge("branch_disk", limits.branch_disk))
        self.vanished = 0  # bytes that vanished since its last walk, whichever tree wrote them
        self.freed = 0  # bytes that became free since then
        self.explained = 0  # bytes by which other trees grew since then
        self.device = 0
        self.free = 0  # bytes, of that device
        self.used = 0  # at its last walk; 0 before the first
        self.hidden = self.hidden_before = (
            0  # bytes that vanished into no directory while its descriptors were in flight
        )
        self.walked_at = 0.0
        self.walk_seconds = 0.0
        self.written = 0
        self.remaining = remaining_bytes(limits.tmp, 0), remaining_bytes(limits.branch_disk, 0)

    def is_due(self, now: float, slow_after: float) -> bool:
        """Whether it can have exceeded a cap; `slow_after`: seconds after which little counts."""
        elapsed = now - self.walked_at
        if self.hidden:
            return elapsed >= SCAN_SECONDS
        if self.freed > min(gauge.to_rearm for gauge in self.gauges):
            return elapsed >= SCAN_SECONDS
        return elapsed >= SCAN_SECONDS and (
            2 * self.vanished >= min(self.remaining)
            or (elapsed >= slow_after and self.vanished > 0)
        )


def remaining_bytes(cap: int, used: int) -> float:
    """Bytes below a cap; unlimited if it is 0."""
    return max(0, cap - used) if cap else float("inf")


def free_space(directory: str) -> tuple[int, int, int]:
    """The device, its free bytes including the cost of free inodes, and its free bytes. Raises
    OSError.
    """
    stats = os.statvfs(directory)
    available = stats.f_bavail * stats.f_frsize
    device = os.stat(directory).st_dev  # noqa: PTH116
    return device, available + stats.f_favail * INODE_BYTES, available

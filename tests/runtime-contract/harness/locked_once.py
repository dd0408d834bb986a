"""The files that `lock` writes for a checkout, for others of the same packages."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.lockfile.writer import serialize_lock
from harness.checkout import Checkout
from harness.mirror import Mirror
from harness.mirrored_packages import relock_bytes


@dataclass(frozen=True)
class LockedOnce:
    """A checkout after `lock`, what that printed, and the folder of its mirror."""

    checkout: Checkout
    said: str
    mirror: Path

    @classmethod
    def of(cls, checkout: Checkout, mirror: Mirror) -> LockedOnce:
        """Runs `lock`."""
        return cls(checkout, checkout.run("lock"), mirror.folder)

    def give(self, other: Checkout, mirror: Mirror) -> None:
        """What `lock` would write for a checkout with another mirror of the same packages."""
        lock = relock_bytes(parse_lock(self.checkout.lock), self.mirror, mirror.folder)
        other.lock.write_bytes(serialize_lock(lock))
        for path in self.checkout.requirement_files():
            shutil.copy2(path, other.source)

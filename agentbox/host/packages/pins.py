"""Versions that a new lock keeps while they are served: those of the old lock except the ones to
upgrade.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from agentbox.plan.lockfile.model import Lock


@dataclass(frozen=True)
class Pins:
    """Kept versions by source; Debian's also by architecture, npm's by path in the image, as a name
    may have several.
    """

    debian: dict[str, dict[str, str]] = field(default_factory=dict)
    wheels: dict[str, str] = field(default_factory=dict)
    npm: dict[str, str] = field(default_factory=dict)


def select_pins(old: Lock | None, upgrade: Iterable[str] | None) -> Pins:
    """`upgrade`: None keeps everything, an empty list upgrades everything, names upgrade those."""
    names = None if upgrade is None else set(upgrade)
    if old is None or names == set():
        return Pins()
    upgraded = (names or set()) | {canonicalize_name(name) for name in names or ()}
    return Pins(
        {
            arch: {row.name: row.version for row in rows if row.name not in upgraded}
            for arch, rows in old.debian.items()
        },
        {row.name: row.version for row in old.wheels if row.name not in upgraded},
        {path: row.version for row in old.npm if row.name not in upgraded for path in row.paths},
    )

"""The changes of a new lock: packages that were moved, added or removed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentbox.plan.lockfile.model import Lock


@dataclass(frozen=True, order=True)
class PackageChange:
    """One package of one table; "" = not in that lock."""

    table: str
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        if not self.old:
            return f"added {self.name} {self.new} ({self.table})"
        if not self.new:
            return f"removed {self.name} {self.old} ({self.table})"
        return f"moved {self.name} {self.old} -> {self.new} ({self.table})"


@dataclass(frozen=True)
class LockChanges:
    """All changes, sorted by table and name."""

    rows: tuple[PackageChange, ...]

    @property
    def summary(self) -> str:
        """`moved 3, added 1, removed 0`."""
        added = sum(not row.old for row in self.rows)
        removed = sum(not row.new for row in self.rows)
        return f"moved {len(self.rows) - added - removed}, added {added}, removed {removed}"


def diff_locks(old: Lock | None, new: Lock) -> LockChanges:
    """Compare by package, not by file: another wheel of the same version is not a change."""
    before, after = _versions(old), _versions(new)
    keys = sorted(set(before) | set(after))
    rows = (PackageChange(*key, before.get(key, ""), after.get(key, "")) for key in keys)
    return LockChanges(tuple(row for row in rows if row.old != row.new))


def _versions(lock: Lock | None) -> Mapping[tuple[str, str], str]:
    collected: dict[tuple[str, str], list[str]] = {}
    for table, name, version in _rows(lock):
        collected_versions = collected.setdefault((table, name), [])
        if version not in collected_versions:
            collected_versions.append(version)
    return {key: " ".join(sorted(versions)) for key, versions in collected.items()}


def _rows(lock: Lock | None) -> Iterator[tuple[str, str, str]]:
    if lock is not None:
        for table, entries in lock.tables():
            for entry in entries:
                yield table, entry.name, entry.version

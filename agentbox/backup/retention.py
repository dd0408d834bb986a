"""Which snapshots stay: the union of rules, as restic has it. Days, weeks (ISO 8601) and months are
those of UTC; of each the newest snapshot counts, and only periods with a snapshot are counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from agentbox.backup.errors import CLOCK, BackupError
from agentbox.contracts.backups import Snapshot

FUTURE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Policy:
    """`keep` newest, and the newest of so many days, weeks and months."""

    keep: int
    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError("keep must be at least 1")


def removable(
    snapshots: Sequence[Snapshot], policy: Policy, *, now: datetime
) -> tuple[Snapshot, ...]:
    """What no rule keeps, oldest first. A partial snapshot counts for no rule: it stays as long as
    it is newer than the oldest of the `keep` newest complete ones. Raises BackupError (exit 3)
    while a head lies more than an hour in the future.
    """
    _check_clock(snapshots, now)
    complete = sorted(
        (snapshot for snapshot in snapshots if not snapshot.partial), key=_age, reverse=True
    )
    newest = complete[: policy.keep]
    kept = {snapshot.id for snapshot in newest}
    kept |= _newest_of_each(complete, policy.daily, lambda at: at.date())
    kept |= _newest_of_each(complete, policy.weekly, lambda at: at.isocalendar()[:2])
    kept |= _newest_of_each(complete, policy.monthly, lambda at: (at.year, at.month))
    oldest = newest[-1].time if len(newest) == policy.keep else None
    kept |= {
        snapshot.id
        for snapshot in snapshots
        if snapshot.partial and (oldest is None or snapshot.time > oldest)
    }
    return tuple(sorted((s for s in snapshots if s.id not in kept), key=_age))


def _check_clock(snapshots: Sequence[Snapshot], now: datetime) -> None:
    ahead = [snapshot for snapshot in snapshots if snapshot.time > now + FUTURE]
    if ahead:
        raise BackupError(
            CLOCK,
            f"cannot prune: snapshot {ahead[0].id} lies in the future "
            f"({ahead[0].time:%Y-%m-%d %H:%M} UTC)",
            "Nothing was removed. Set this machine's clock; a snapshot with a wrong time is "
            "removed by hand, head first.",
        )


def _newest_of_each(
    newest_first: Sequence[Snapshot], count: int, period: Callable[[datetime], object]
) -> set[str]:
    found: dict[object, str] = {}
    for snapshot in newest_first:
        key = period(snapshot.time.astimezone(UTC))
        if key not in found:
            if len(found) == count:
                break
            found[key] = snapshot.id
    return set(found.values())


def _age(snapshot: Snapshot) -> tuple[datetime, str]:
    return snapshot.time, snapshot.id

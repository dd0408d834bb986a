"""What is kept, over years of snapshots, and when nothing is removed at all."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.staged_snapshots import AT, cut_at, filled, head_at, identity, stage

from agentbox.backup.errors import BackupError
from agentbox.backup.retention import Policy, removable
from agentbox.contracts.backups import Snapshot
from agentbox.core.errors import ExitCode


def kept(snapshots: list[Snapshot], policy: Policy, now: datetime) -> list[Snapshot]:
    gone = {snapshot.id for snapshot in removable(snapshots, policy, now=now)}
    return [snapshot for snapshot in snapshots if snapshot.id not in gone]


def test_hourly_for_a_year() -> None:
    """24 a day for 400 days: 7 newest, 7 days, 4 weeks, 6 months, which overlap."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    snapshots = [head_at(hour, start + timedelta(hours=hour)) for hour in range(400 * 24)]
    now = snapshots[-1].time
    found = [row.time for row in kept(snapshots, Policy(7, 7, 4, 6), now)]
    newest = [now - timedelta(hours=hour) for hour in range(7)]
    days = [datetime(2026, 2, 4, 23, tzinfo=UTC) - timedelta(days=day) for day in range(7)]
    weeks = [datetime(2026, 2, day, 23, tzinfo=UTC) for day in (4, 1)]
    weeks += [datetime(2026, 1, day, 23, tzinfo=UTC) for day in (25, 18)]
    months = [datetime(2026, 2, 4, 23, tzinfo=UTC), datetime(2026, 1, 31, 23, tzinfo=UTC)]
    months += [datetime(2025, month, day, 23, tzinfo=UTC) for month, day in ((12, 31), (11, 30))]
    months += [datetime(2025, month, day, 23, tzinfo=UTC) for month, day in ((10, 31), (9, 30))]
    assert found == sorted({*newest, *days, *weeks, *months})


@pytest.mark.parametrize("seed", range(30))
def test_the_newest_always_stay(seed: int) -> None:
    """Any times, any policy, partial ones among them; pruning again removes nothing."""
    rng = random.Random(seed)
    snapshots = [
        head_at(
            number,
            AT + timedelta(minutes=rng.randrange(200_000)),
            partial=("beads",) if rng.random() < 0.2 else (),
        )
        for number in range(120)
    ]
    policy = Policy(rng.randrange(1, 9), *(rng.randrange(5) for _ in range(3)))
    now = max(snapshot.time for snapshot in snapshots)
    left = kept(snapshots, policy, now)
    complete = sorted(
        (row for row in snapshots if not row.partial), key=lambda row: row.time, reverse=True
    )
    assert {row.id for row in complete[: policy.keep]} <= {row.id for row in left}
    assert kept(left, policy, now) == left
    whole = [row for row in left if not row.partial]
    assert len(whole) <= policy.keep + policy.daily + policy.weekly + policy.monthly


def test_partial_ones_do_not_count() -> None:
    """Ten partial ones push out no complete one; the partial ones before it go."""
    snapshots = [head_at(0, AT), head_at(1, AT + timedelta(days=1), partial=("pods",))]
    snapshots.append(head_at(2, AT + timedelta(days=2)))
    snapshots += [head_at(n, AT + timedelta(days=n), partial=("pods",)) for n in range(3, 13)]
    gone = removable(snapshots, Policy(1), now=AT + timedelta(days=20))
    assert [row.id for row in gone] == ["s00000", "s00001"]


def test_the_clock_went_back(tmp_path: Path) -> None:
    """Nothing is removed while a head lies more than an hour in the future."""
    repository = filled(tmp_path, identity()[1], 3)
    with pytest.raises(BackupError, match="lies in the future") as caught:
        repository.prune(Policy(1), verified="s3", now=AT + timedelta(days=2, hours=22))
    assert caught.value.exit_code is ExitCode.PREREQUISITE
    assert len(repository.list()) == 3
    gone = repository.prune(Policy(1), verified="s3", now=AT + timedelta(days=2, hours=23))
    assert [row.id for row in gone] == ["s1", "s2"]
    assert not repository.verify_all()


def test_not_before_the_new_one_was_verified(tmp_path: Path) -> None:
    """Another id than that of the newest removes nothing; a dry run needs none."""
    repository = filled(tmp_path, identity()[1], 3)
    now = AT + timedelta(days=9)
    with pytest.raises(BackupError, match="s3 was not verified"):
        repository.prune(Policy(1), verified="s2", now=now)
    assert [row.id for row in repository.prune(Policy(1), verified="", now=now, dry_run=True)] == [
        "s1",
        "s2",
    ]
    assert len(repository.list()) == 3


def test_pruning_and_writing_in_turn(tmp_path: Path) -> None:
    """The chain holds: what was pruned is not missed, what is removed by hand is."""
    key, recipient = identity()
    repository = filled(tmp_path, recipient, 2)
    for number in range(3, 8):
        repository.write(stage(tmp_path / "staged", cut_at(number), size=500))
        repository.prune(Policy(2), verified=f"s{number}", now=AT + timedelta(days=number))
        assert not repository.verify_all()
    repository.remove("s6")
    assert not repository.verify_all()
    assert [row.id for row in repository.list()] == ["s7"]
    with repository.open("s7", [key]) as members:
        assert list(members)

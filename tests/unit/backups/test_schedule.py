"""The times of a schedule, and what a schedule does after a missed run or with a wrong clock."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentbox.api.backups.cron import next_after
from agentbox.api.backups.record import BackupRecord
from agentbox.api.backups.schedule import due_at, overdue_seconds
from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.manifest.declarations.constraints import Pattern, compiled
from agentbox.manifest.named_types import Cron

SUNDAY = datetime(2026, 3, 1, 12, 30, 20, tzinfo=UTC)  # 1 March 2026


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-03-01T12:31"),
        ("30 12 * * *", "2026-03-02T12:30"),
        ("*/15 * * * *", "2026-03-01T12:45"),
        ("0 3 * * *", "2026-03-02T03:00"),
        ("5,35 9-17/4 * * *", "2026-03-01T13:05"),
        ("0 0 1 * *", "2026-04-01T00:00"),
        ("0 0 * * 0", "2026-03-08T00:00"),
        ("0 0 13 * 5", "2026-03-06T00:00"),  # the 13th, or a Friday
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("10/20 0 * * *", "2026-03-02T00:10"),
    ],
)
def test_the_next_time(schedule: str, expected: str) -> None:
    """The first minute after the moment, never the moment's own."""
    found = next_after(schedule, SUNDAY)
    assert found is not None
    assert f"{found:%Y-%m-%dT%H:%M}" == expected
    assert found.tzinfo == UTC


def test_a_day_that_never_comes_is_never_due() -> None:
    """30 February."""
    assert next_after("0 0 30 2 *", SUNDAY) is None


def test_a_time_in_another_zone_is_that_of_utc() -> None:
    """The zone of the machine does not matter."""
    local = SUNDAY.astimezone(tz=None)
    assert next_after("0 3 * * *", local) == next_after("0 3 * * *", SUNDAY)


@pytest.mark.parametrize("text", ["@daily", "0 3 * *", "60 * * * *", "0 24 * * *", "0 3 * * 7", "0  3 * * *", "a b c d e"])  # fmt: skip
def test_the_manifest_refuses_what_would_not_be_understood(text: str) -> None:
    """Names, seconds, numbers out of range; lists, ranges and steps pass."""
    (pattern,) = (mark for mark in Cron.__metadata__ if isinstance(mark, Pattern))
    assert not pattern.allows(text)
    assert compiled(pattern.text).search("*/5 0-6 1,15 * 1-5")


def test_a_missed_run_is_due_at_once_and_only_once() -> None:
    """The box was off for three days."""
    now = SUNDAY
    missed = due_at("0 3 * * *", now - timedelta(days=3), now)
    assert missed is not None
    assert missed < now
    following = due_at("0 3 * * *", now, now)
    assert following is not None
    assert following > now


def test_a_clock_that_was_wrong_does_not_stop_the_schedule() -> None:
    """The last attempt lies two days ahead."""
    due = due_at("0 3 * * *", SUNDAY + timedelta(days=2), SUNDAY)
    assert due == datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


def test_without_a_schedule_nothing_is_due() -> None:
    """Nor before it was first seen."""
    assert due_at("", SUNDAY, SUNDAY) is None
    assert due_at("0 3 * * *", None, SUNDAY) is None


def test_the_record_survives_and_forgets_removed_snapshots(tmp_path: Path) -> None:
    """A snapshot with a fault counts as verified no more; an unreadable record is begun anew."""
    paths = Paths(tmp_path)
    paths.state.mkdir(parents=True)
    record = BackupRecord(paths)
    assert (record.attempted_at, record.succeeded_at) == (None, None)
    record.attempted()
    record.succeeded("one", [])
    record.succeeded("two", ["one"])
    again = BackupRecord(paths)
    assert again.attempted_at is not None
    assert again.succeeded_at is not None
    assert (again.verified_at("one"), again.verified_at("two") is not None) == (None, True)
    again.verified("two", ["two.tar: is missing"])
    again = BackupRecord(paths)
    assert (again.verified_at("two"), again.faults("two")) == (None, ("two.tar: is missing",))
    paths.backup_record.write_bytes(b"{half")
    assert BackupRecord(paths).attempted_at is None


def test_a_backup_is_overdue_from_its_time_until_one_is_made(tmp_path: Path) -> None:
    """Counted from the last good one, or from when the schedule was first seen: attempts that fail
    do not stop the count.
    """
    record = BackupRecord(Paths(tmp_path))
    Paths(tmp_path).state.mkdir(parents=True)
    later = clock.now() + timedelta(days=3)
    assert overdue_seconds("0 3 * * *", record, later) == 0
    record.attempted()
    seen = overdue_seconds("0 3 * * *", record, later)
    assert 1.9 * 86400 < seen < 3 * 86400
    record.attempted()
    assert overdue_seconds("0 3 * * *", BackupRecord(Paths(tmp_path)), later) == seen
    assert overdue_seconds("", record, later) == 0
    record.succeeded("s1", [])
    made = record.succeeded_at
    assert made is not None
    assert overdue_seconds("0 3 * * *", record, made) == 0


def test_threads_do_not_lose_what_another_records(tmp_path: Path) -> None:
    """A backup is made while others are verified: each result is in the file."""
    paths = Paths(tmp_path)
    paths.state.mkdir(parents=True)
    record, ids = BackupRecord(paths), [f"s{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        results = [pool.submit(record.verified, id, []) for id in ids]
        results += [pool.submit(record.attempted) for _ in ids]
    for result in results:
        result.result()
    again = BackupRecord(paths)
    assert [id for id in ids if again.verified_at(id) is None] == []
    assert again.attempted_at is not None

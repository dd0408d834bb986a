"""The next time of a schedule: five fields of cron, in UTC, as the manifest's type has them."""

from datetime import UTC, datetime, timedelta
from typing import Final

_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_YEARS: Final = 9  # 29 February is at most eight years away


def next_after(schedule: str, moment: datetime) -> datetime | None:
    """The first minute after `moment` that matches; None if there is none, as for 30 February.
    Where day of month and day of week are both given, one of them is enough, as in crontab(5).
    """
    fields = schedule.split(" ")
    minutes, hours, days, months, weekdays = (
        _values(field, *bounds) for field, bounds in zip(fields, _RANGES, strict=True)
    )
    either = fields[2] != "*" and fields[4] != "*"
    start = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    day = start.date()
    while day.year <= start.year + _YEARS:
        in_month, in_week = day.day in days, day.isoweekday() % 7 in weekdays
        if day.month in months and (in_month or in_week if either else in_month and in_week):
            for hour in hours:
                for minute in minutes:
                    found = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
                    if found >= start:
                        return found
        day += timedelta(days=1)
    return None


def _values(field: str, low: int, high: int) -> list[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            bounds = low, high
        else:
            bounds = int(first), int(last) if last else high if step else int(first)
        found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return sorted(found)

"""Schedules: 5-field cron in UTC, or an ISO 8601 duration of at least 60 s."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from cronsim import CronSim, CronSimError

from agentbox.core.records.wire import invalid_value

MIN_STEP = timedelta(seconds=60)
_DURATION = re.compile(
    r"P(?=.)(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?=.)(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?"
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed `every`: exactly one of the two fields is set."""

    cron: str = ""
    step: timedelta = timedelta()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValidationError with the reason."""
        if text.startswith("P"):
            return cls(step=_parse_duration(text))
        if len(text.split()) != 5:
            raise invalid_value("/every", "must have five cron fields, or be an ISO 8601 duration")
        try:
            next(CronSim(text, datetime(2000, 1, 1)))
        except CronSimError as error:
            raise invalid_value("/every", f"is not a valid cron expression: {error}") from error
        except StopIteration:
            raise invalid_value("/every", "never matches") from None
        return cls(cron=text)

    def first_due(self, start: datetime) -> datetime:
        """Return the first due time after `start`."""
        return self.next_due(start, start)

    def next_due(self, due: datetime, moment: datetime) -> datetime:
        """Return the first due time after `moment`. `due` is any due time, or the start of the
        steps."""
        if self.cron:
            return next(CronSim(self.cron, moment))
        return due + self.step * ((moment - due) // self.step + 1)

    def latest_due(self, due: datetime, moment: datetime) -> datetime:
        """Return the last due time up to `moment`. `due` is a due time not after `moment`."""
        if self.cron:
            return next(
                CronSim(
                    self.cron, moment.replace(microsecond=0) + timedelta(seconds=1), reverse=True
                )
            )
        return due + self.step * ((moment - due) // self.step)


def _parse_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise invalid_value(
            "/every", "must be an ISO 8601 duration in weeks, days, hours, minutes and seconds"
        )
    weeks, days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    step = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if step < MIN_STEP:
        raise invalid_value("/every", "must be at least 60 s")
    return step

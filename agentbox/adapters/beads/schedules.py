"""Repeating times: 5-field cron in UTC, or an ISO 8601 duration of 60 s or more."""

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
    """A parsed `every`: exactly one of the two is set."""

    cron: str = ""
    step: timedelta = timedelta()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValidationError with what is wrong."""
        if text.startswith("P"):
            return cls(step=_parse_duration(text))
        if len(text.split()) != 5:
            raise invalid_value("/every", "must have five cron fields, or be an ISO 8601 duration")
        try:
            next(CronSim(text, datetime(2000, 1, 1)))
        except CronSimError as error:
            raise invalid_value("/every", f"is no cron expression: {error}") from error
        except StopIteration:
            raise invalid_value("/every", "matches no time") from None
        return cls(cron=text)

    def first_due(self, start: datetime) -> datetime:
        """The first due time after `start`."""
        return self.next_due(start, start)

    def next_due(self, due: datetime, moment: datetime) -> datetime:
        """The first due time later than `moment`, where `due` is one (or where the steps begin)."""
        if self.cron:
            return next(CronSim(self.cron, moment))
        return due + self.step * ((moment - due) // self.step + 1)

    def latest_due(self, due: datetime, moment: datetime) -> datetime:
        """The last due time not later than `moment`, from `due` (one, not later than `moment`) on."""
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
            "/every", "is no ISO 8601 duration in weeks, days, hours, minutes and seconds"
        )
    weeks, days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    step = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if step < MIN_STEP:
        raise invalid_value("/every", "must be 60 s or more")
    return step

"""The evaluator behind `/ready`: checks in the background, periodically and on events; a request
only reads the verdict.

READY falls with the first failed check. It rises once every requirement has passed a check that
started after the last failure: one complete pass.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentbox.box.readiness.requirement import Requirement
from agentbox.box.readiness.verdict import ReadinessVerdict
from agentbox.core import clock

__all__ = ["Evaluator", "ReadinessVerdict", "Requirement"]

STALLED = "readiness evaluator stalled"
STALLED_SECONDS = 10.0
NOT_SEALED = "bootstrap.done sentinel"
DRAINING = "draining"
_RETRY = 1.0  # seconds until a failed check is repeated, if its period is longer
_STALL_PERIOD = 10.0  # requirements with at most this period are part of the stall check


@dataclass(frozen=True)
class _Result:
    started: float
    finished: float
    missing: tuple[str, ...]


class Evaluator:
    """Takes the requirements in the order of `missing`. Start `run` as one task; read `verdict`
    anywhere in the loop.
    """

    def __init__(
        self,
        requirements: Sequence[Requirement],
        *,
        clock_scale: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requirements = tuple(requirements)
        self._subscribers: list[Callable[[ReadinessVerdict, ReadinessVerdict], None]] = []
        self._scale = clock_scale
        self._monotonic = monotonic
        self._results: dict[str, _Result] = {}
        self._wake_events = {
            requirement.family: asyncio.Event() for requirement in self._requirements
        }
        self._last_failure = self._created = monotonic()
        self._draining = False
        names = tuple(requirement.title for requirement in self._requirements if requirement.title)
        self._verdict = ReadinessVerdict(False, None, names, (NOT_SEALED,), (), clock.now())

    @property
    def verdict(self) -> ReadinessVerdict:
        """The last verdict; not ready, with the stall as reason, when the checks have not completed
        for 10 s.
        """
        if self._monotonic() - self._oldest_pass() <= STALLED_SECONDS:
            return self._verdict
        missing = self._verdict.missing if not self._verdict.ready else ()
        return replace(self._verdict, ready=False, since=None, missing=(*missing, STALLED))

    def subscribe(self, changed: Callable[[ReadinessVerdict, ReadinessVerdict], None]) -> None:
        """Calls `changed` with the old and the new verdict at each change."""
        self._subscribers.append(changed)

    def drain(self) -> None:
        """Not ready from now on, permanently."""
        self._draining = True
        self._publish()

    def wake(self, family: str) -> None:
        """Checks that family now, for example after a connection error. Raises KeyError for an
        unknown family.
        """
        self._wake_events[family].set()

    def met(self) -> Mapping[str, bool]:
        """For the gauge: each checked family, and whether its last check passed."""
        return {family: not result.missing for family, result in self._results.items()}

    async def run(self) -> None:
        """Checks until cancelled. A check that raises is a bug and ends this; the verdict then
        reports the stall.
        """
        async with asyncio.TaskGroup() as group:
            for requirement in self._requirements:
                group.create_task(
                    self._check_repeatedly(requirement), name=f"readiness-{requirement.family}"
                )

    async def _check_repeatedly(self, requirement: Requirement) -> None:
        wake = self._wake_events[requirement.family]
        requirement.attach(wake.set)
        try:
            while True:
                wake.clear()
                started = self._monotonic()
                missing = await _check_in_time(requirement)
                self._record(requirement.family, _Result(started, self._monotonic(), missing))
                period = min(requirement.period, _RETRY) if missing else requirement.period
                await _wait(wake, period / self._scale)
        finally:
            requirement.detach()

    def _record(self, family: str, result: _Result) -> None:
        previous = self._results.get(family)
        self._results[family] = result
        if result.missing:
            self._last_failure = result.finished
        elif previous is not None and previous.missing:
            self._wake_unmet()
        self._publish()

    def _wake_unmet(self) -> None:
        """The fix of one requirement often fixes others."""
        for family, result in self._results.items():
            if result.missing:
                self._wake_events[family].set()

    def _publish(self) -> None:
        missing = [
            text for requirement in self._requirements for text in self._missing(requirement)
        ]
        if self._draining and DRAINING not in missing:
            missing.append(DRAINING)
        if missing:
            self._set_verdict(ready=False, missing=tuple(missing))
        elif self._verdict.ready or self._is_complete_pass():
            self._set_verdict(ready=True, missing=())

    def _missing(self, requirement: Requirement) -> tuple[str, ...]:
        result = self._results.get(requirement.family)
        return result.missing if result else ()

    def _is_complete_pass(self) -> bool:
        """True after a complete pass; else requests the missing checks."""
        outdated = [family for family in self._wake_events if not self._is_fresh(family)]
        for family in outdated:
            if family in self._results:
                self._wake_events[family].set()
        return not outdated

    def _is_fresh(self, family: str) -> bool:
        result = self._results.get(family)
        return result is not None and result.started >= self._last_failure

    def _set_verdict(self, *, ready: bool, missing: tuple[str, ...]) -> None:
        previous = self._verdict
        now = clock.now()
        self._verdict = ReadinessVerdict(
            ready=ready,
            since=(previous.since or now) if ready else None,
            requirements=previous.requirements,
            missing=missing,
            degraded=tuple(
                name for requirement in self._requirements for name in requirement.degraded()
            ),
            checked_at=now,
            evidence=self._evidence(),
        )
        if (previous.ready, previous.missing, previous.degraded) != (
            ready,
            missing,
            self._verdict.degraded,
        ):
            for changed in self._subscribers:
                changed(previous, self._verdict)

    def _evidence(self) -> dict[str, Any]:
        evidence: dict[str, Any] = {}
        for requirement in self._requirements:
            evidence |= requirement.evidence()
        return evidence

    def _oldest_pass(self) -> float:
        often = [
            requirement.family
            for requirement in self._requirements
            if requirement.period <= _STALL_PERIOD
        ]
        return min(
            self._results[family].finished if family in self._results else self._created
            for family in often
        )


async def _check_in_time(requirement: Requirement) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(requirement.deadline):
            return await requirement.check()
    except TimeoutError:
        return requirement.missing_on_timeout()


async def _wait(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return

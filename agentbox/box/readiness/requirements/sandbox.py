"""`sandbox:<rule> not enforced`: a canary in the sandbox of a real agent has checked each rule."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from agentbox.box.readiness.requirement import Requirement
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core import clock

STALE_SECONDS = 660.0  # two periods of the canaries, and a slow run
NOT_RUN = "canary"


class SandboxRequirement(Requirement):
    """`report` returns the last report of the canaries, None before the first; it must not block.
    While agent-host is down its last report stands: its program is reported as missing then.
    """

    family = "sandbox"
    title = "sandbox:proven"

    def __init__(
        self,
        report: Callable[[], CanaryReport | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._monotonic = monotonic
        self._last_revision: tuple[int, float] = (-1, 0.0)  # revision, and its time of arrival

    async def check(self) -> tuple[str, ...]:
        report = self._report()
        if report is None or report.at is None:
            return self.missing_on_timeout()
        if report.revision != self._last_revision[0]:
            self._last_revision = (report.revision, self._monotonic())
        if self._monotonic() - self._last_revision[1] > STALE_SECONDS or not report.rules:
            return self.missing_on_timeout()
        return tuple(_missing_text(rule) for rule in sorted(report.failed))

    def missing_on_timeout(self) -> tuple[str, ...]:
        return (_missing_text(NOT_RUN),)

    def evidence(self) -> Mapping[str, Any]:
        report = self._report()
        if report is None or report.at is None:
            return {}
        passed = 0 if NOT_RUN in report.failed else report.rules - len(report.failed)
        return {
            "sandbox": {"passed": passed, "rules": report.rules, "at": clock.to_wire(report.at)}
        }


def _missing_text(rule: str) -> str:
    return f"sandbox:{rule} not enforced"

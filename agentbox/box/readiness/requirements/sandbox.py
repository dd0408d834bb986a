"""`sandbox:<rule> not enforced`: a canary in a real agent's sandbox has shown that each rule of it holds."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from agentbox.box.readiness.requirement import Requirement
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core import clock

STALE_SECONDS = 660.0  # two periods of the canaries, and a slow run
NOT_RUN = "canary"


class SandboxRequirement(Requirement):
    """`report` is what the canaries found last, None before their first word; it must not block. While agent-host is away
    its last report stands: its program is named as missing then."""

    family = "sandbox"
    listed_as = "sandbox:proven"

    def __init__(
        self, report: Callable[[], CanaryReport | None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._monotonic = monotonic
        self._seen: tuple[int, float] = (-1, 0.0)  # revision, and when it came

    async def check(self) -> tuple[str, ...]:
        found = self._report()
        if found is None or found.at is None:
            return self.late()
        if found.revision != self._seen[0]:
            self._seen = (found.revision, self._monotonic())
        if self._monotonic() - self._seen[1] > STALE_SECONDS or not found.rules:
            return self.late()
        return tuple(_text(rule) for rule in sorted(found.failed))

    def late(self) -> tuple[str, ...]:
        return (_text(NOT_RUN),)

    def evidence(self) -> Mapping[str, Any]:
        found = self._report()
        if found is None or found.at is None:
            return {}
        passed = 0 if NOT_RUN in found.failed else found.rules - len(found.failed)
        return {"sandbox": {"passed": passed, "rules": found.rules, "at": clock.to_wire(found.at)}}


def _text(rule: str) -> str:
    return f"sandbox:{rule} not enforced"

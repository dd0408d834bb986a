"""Denied calls: counted exactly, reported in batches."""

import time
from collections.abc import Iterator
from typing import Final

from agentbox.sandbox.spec import SyscallDenials

REPORT_SECONDS: Final = 0.1
_MAX_DETAIL: Final = 200  # characters


class DeniedCall(OSError):
    """A denial that is counted. `rule` is one of a small set of names, `detail` describes the
    request. `signature` selects a class of its own, from a small set too (config/denials.toml).
    """

    def __init__(self, code: int, rule: str, detail: str = "", signature: str = "") -> None:
        super().__init__(code, rule)
        self.rule, self.detail, self.signature = rule, detail, signature


class DenialCounter:
    """Counts by rule and signature."""

    def __init__(self) -> None:
        self._unreported: dict[tuple[str, str], SyscallDenials] = {}
        self._next_report = 0.0

    def add(self, denied: DeniedCall) -> None:
        """Counts a denial."""
        key = (denied.rule, denied.signature)
        previous = self._unreported[key].count if key in self._unreported else 0
        self._unreported[key] = SyscallDenials(
            rule=denied.rule,
            signature=denied.signature,
            count=previous + 1,
            detail=denied.detail[:_MAX_DETAIL],
        )

    def next_poll(self) -> float | None:
        """Seconds until a report is due; None if there is none."""
        return max(0.0, self._next_report - time.monotonic()) if self._unreported else None

    def pop_due(self, *, flush: bool = False) -> Iterator[SyscallDenials]:
        """The denials to report now, at most ten times a second."""
        now = time.monotonic()
        if self._unreported and (flush or now >= self._next_report):
            self._next_report = now + REPORT_SECONDS
            unreported, self._unreported = self._unreported, {}
            yield from unreported.values()

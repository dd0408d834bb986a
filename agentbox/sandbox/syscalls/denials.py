"""What was refused, counted exactly and told in few words."""

import time
from collections.abc import Iterator
from typing import Final

from agentbox.sandbox.spec import SyscallDenials

REPORT_SECONDS: Final = 0.1
_MAX_DETAIL: Final = 200  # characters


class DeniedCall(OSError):
    """A refusal that counts. `rule` is one of a small set of names, `detail` what was asked for. `signature`: what a class of
    its own is given to, of a small set too (config/denials.toml)."""

    def __init__(self, code: int, rule: str, detail: str = "", signature: str = "") -> None:
        super().__init__(code, rule)
        self.rule, self.detail, self.signature = rule, detail, signature


class DenialCounter:
    """Counts by rule and signature."""

    def __init__(self) -> None:
        self._unreported: dict[tuple[str, str], SyscallDenials] = {}
        self._next_report = 0.0

    def add(self, denied: DeniedCall) -> None:
        """One more."""
        key = (denied.rule, denied.signature)
        previous = self._unreported[key].count if key in self._unreported else 0
        self._unreported[key] = SyscallDenials(
            rule=denied.rule,
            signature=denied.signature,
            count=previous + 1,
            detail=denied.detail[:_MAX_DETAIL],
        )

    def next_poll(self) -> float | None:
        """Seconds until some are due to be told; None when there are none."""
        return max(0.0, self._next_report - time.monotonic()) if self._unreported else None

    def take_due(self, *, flush: bool = False) -> Iterator[SyscallDenials]:
        """Those to be told now, at most ten times a second."""
        now = time.monotonic()
        if self._unreported and (flush or now >= self._next_report):
            self._next_report = now + REPORT_SECONDS
            unreported, self._unreported = self._unreported, {}
            yield from unreported.values()

    def discard(self) -> None:
        """As if nothing had been refused."""
        self._unreported = {}

"""What was refused, counted exactly and told in few words."""

import time
from collections.abc import Iterator
from typing import Final

from agentbox.sandbox.spec import Denials

TELL_SECONDS: Final = 0.1
_DETAIL: Final = 200  # characters


class Denied(OSError):
    """A refusal that counts. `rule` is one of a small set of names, `detail` what was asked for. `signature`: what a class of
    its own is given to, of a small set too (config/denials.toml)."""

    def __init__(self, number: int, rule: str, detail: str = "", signature: str = "") -> None:
        super().__init__(number, rule)
        self.rule, self.detail, self.signature = rule, detail, signature


class Counts:
    """Counts by rule and signature."""

    def __init__(self) -> None:
        self._untold: dict[tuple[str, str], Denials] = {}
        self._next = 0.0

    def add(self, denied: Denied) -> None:
        """One more."""
        key = (denied.rule, denied.signature)
        before = self._untold[key].count if key in self._untold else 0
        self._untold[key] = Denials(
            rule=denied.rule, signature=denied.signature, count=before + 1, detail=denied.detail[:_DETAIL]
        )

    def patience(self) -> float | None:
        """Seconds until some are due to be told; None when there are none."""
        return max(0.0, self._next - time.monotonic()) if self._untold else None

    def due(self, *, all_of_them: bool = False) -> Iterator[Denials]:
        """Those to be told now, at most ten times a second."""
        now = time.monotonic()
        if self._untold and (all_of_them or now >= self._next):
            self._next = now + TELL_SECONDS
            untold, self._untold = self._untold, {}
            yield from untold.values()

    def forget(self) -> None:
        """As if nothing had been refused."""
        self._untold = {}

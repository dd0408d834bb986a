"""What the launcher has seen of one agent's limits, as the host hears it."""

from collections.abc import Callable, Mapping
from typing import Any

from agentbox.policy.limits.gauge import Breach


class LimitReadings:
    """`peaks` by limit; `breach`: the first limit that was crossed."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self.breach: Breach | None = None
        self._warnings: list[Breach] = []
        self._on_warning: Callable[[Breach], None] | None = None

    def store_peaks_in(self, peaks: dict[str, float]) -> None:
        """From now on the peaks are kept there, where an earlier life may have left some."""
        for limit, peak in self.peaks.items():
            peaks[limit] = max(peak, peaks.get(limit, 0))
        self.peaks = peaks

    def on_warning(self, callback: Callable[[Breach], None]) -> None:
        """Calls `told` for each warning from now on, and for those that came before."""
        self._on_warning, pending = callback, self._warnings
        for warning in pending:
            callback(warning)

    def on_message(self, message: Mapping[str, Any]) -> None:
        """One word of the launcher: peaks, a warning, a breach, or something else."""
        for limit, peak in message.get("peaks", {}).items():
            self.peaks[limit] = max(peak, self.peaks.get(limit, 0))
        for kind in ("breach", "warning"):
            if kind in message:
                self._record(kind, Breach(**message[kind]))

    def _record(self, kind: str, breach: Breach) -> None:
        self.peaks[breach.limit] = max(breach.observed, self.peaks.get(breach.limit, 0))
        if kind == "breach":
            self.breach = self.breach or breach
        elif self._on_warning is None:
            self._warnings.append(breach)
        else:
            self._on_warning(breach)

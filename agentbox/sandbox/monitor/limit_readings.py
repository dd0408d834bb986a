"""The limit readings of one agent that the launcher reports to the host."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentbox.policy.limits.gauge import Breach

CPU_SECONDS: Final = "cpu_seconds"
"""Beside the peaks: CPU time of all ended runs together, their reapers included."""


class LimitReadings:
    """`peaks` by limit, and CPU_SECONDS; `breach`: the first limit that was exceeded."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self.breach: Breach | None = None
        self._warnings: list[Breach] = []
        self._on_warning: Callable[[Breach], None] | None = None

    def store_peaks_in(self, peaks: dict[str, float]) -> None:
        """Stores the peaks in that mapping from now on, which may have peaks of an earlier run."""
        cpu_seconds = self.peaks.pop(CPU_SECONDS, 0)
        for limit, peak in self.peaks.items():
            peaks[limit] = max(peak, peaks.get(limit, 0))
        if cpu_seconds:
            peaks[CPU_SECONDS] = peaks.get(CPU_SECONDS, 0) + cpu_seconds
        self.peaks = peaks

    def on_warning(self, callback: Callable[[Breach], None]) -> None:
        """Calls `callback` for each warning, past ones included."""
        self._on_warning, pending = callback, self._warnings
        for warning in pending:
            callback(warning)

    def on_message(self, message: Mapping[str, Any]) -> None:
        """Handles a message of the launcher: peaks, a warning, a breach, or something else."""
        for limit, peak in message.get("peaks", {}).items():
            self.peaks[limit] = max(peak, self.peaks.get(limit, 0))
        if CPU_SECONDS in message:
            self.peaks[CPU_SECONDS] = self.peaks.get(CPU_SECONDS, 0) + message[CPU_SECONDS]
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

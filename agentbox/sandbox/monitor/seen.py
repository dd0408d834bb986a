"""What the launcher has seen of one agent's limits, as the host hears it."""

from collections.abc import Callable, Mapping
from typing import Any

from agentbox.policy.limits.gauge import Breach


class Seen:
    """`peaks` by limit; `breach`: the first limit that was crossed."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self.breach: Breach | None = None
        self._warnings: list[Breach] = []
        self._told: Callable[[Breach], None] | None = None

    def keep_in(self, peaks: dict[str, float]) -> None:
        """From now on the peaks are kept there, where an earlier life may have left some."""
        for limit, peak in self.peaks.items():
            peaks[limit] = max(peak, peaks.get(limit, 0))
        self.peaks = peaks

    def on_warning(self, told: Callable[[Breach], None]) -> None:
        """Calls `told` for each warning from now on, and for those that came before."""
        self._told, waiting = told, self._warnings
        for warning in waiting:
            told(warning)

    def hear(self, word: Mapping[str, Any]) -> None:
        """One word of the launcher: peaks, a warning, a breach, or something else."""
        for limit, peak in word.get("peaks", {}).items():
            self.peaks[limit] = max(peak, self.peaks.get(limit, 0))
        for kind in ("breach", "warning"):
            if kind in word:
                self._note(kind, Breach(**word[kind]))

    def _note(self, kind: str, what: Breach) -> None:
        self.peaks[what.limit] = max(what.observed, self.peaks.get(what.limit, 0))
        if kind == "breach":
            self.breach = self.breach or what
        elif self._told is None:
            self._warnings.append(what)
        else:
            self._told(what)

"""How long work is shown: bars on a terminal, a line every five seconds elsewhere, JSON lines for programs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from agentbox.core.progress import JsonProgress, NullProgress, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_LINE_EVERY_SECONDS = 5.0
_SHOWN: list[Bar] = []
_BYTES_FROM = 100_000  # totals below are counts of things, not bytes


def progress_for(*, json: bool, quiet: bool, live: bool, color: bool) -> Progress:
    """The progress that fits where stderr goes; `live` says that a line there may be redrawn."""
    if json:
        return JsonProgress(sys.stderr)
    if quiet:
        return NullProgress()
    return Bar(color) if live else Lines()


def clear() -> None:
    """Takes every bar away and gives the cursor back: a stage that was interrupted is never done."""
    for bar in tuple(_SHOWN):
        bar.done()


class Bar:
    """One redrawn bar a stage: done, rate and time left; it goes away when the stage ends."""

    def __init__(self, color: bool) -> None:
        self._color = color
        self._bars: RichProgress | None = None
        self._task: TaskID | None = None

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        from rich import progress
        from rich.console import Console

        self.done()
        console = Console(stderr=True, no_color=not self._color)
        columns = [progress.TextColumn("  {task.description}"), progress.BarColumn(bar_width=30)]
        if total_bytes is None:
            columns += [progress.TimeElapsedColumn()]
        elif total_bytes < _BYTES_FROM:
            columns += [progress.MofNCompleteColumn(), progress.TimeRemainingColumn()]
        else:
            columns += [progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()]
        self._bars = progress.Progress(*columns, console=console, transient=True)
        self._bars.start()
        _SHOWN.append(self)
        self._task = self._bars.add_task(name, total=total_bytes)

    def advance(self, amount: int) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.advance(self._task, amount)

    def done(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            _SHOWN.remove(self)
        self._bars = None


class Lines:
    """A plain line every five seconds while a stage lasts."""

    def __init__(self) -> None:
        self._name, self._seen, self._last = "", 0, 0.0
        self._total: int | None = None

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        self._name, self._total, self._seen, self._last = name, total_bytes, 0, time.monotonic()

    def advance(self, amount: int) -> None:
        self._seen += amount
        if time.monotonic() - self._last >= _LINE_EVERY_SECONDS:
            self._last = time.monotonic()
            print(f"    {self._name}: {_amount(self._seen, self._total)}", file=sys.stderr, flush=True)

    def done(self) -> None:
        return


def _amount(seen: int, total: int | None) -> str:
    if total is None:
        return f"{seen / 1e6:.1f} MB"
    if total < _BYTES_FROM:
        return f"{seen}/{total}"
    return f"{seen / 1e6:.1f}/{total / 1e6:.1f} MB ({100 * seen // total} %)"

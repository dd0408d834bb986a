"""Progress display: bars on a terminal, a line every five seconds elsewhere, or JSON lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from agentbox.core.progress import JsonProgress, NullProgress, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_LINE_INTERVAL_SECONDS = 5.0
_ACTIVE_BARS: list[ProgressBar] = []
_BYTES_THRESHOLD = 100_000  # smaller totals are item counts, not bytes


def create_progress(*, json: bool, quiet: bool, live: bool, color: bool) -> Progress:
    """The progress display for stderr; with `live` a line may be redrawn."""
    if json:
        return JsonProgress(sys.stderr)
    if quiet:
        return NullProgress()
    return ProgressBar(color) if live else ProgressLines()


def clear_bars() -> None:
    """Removes every bar and restores the cursor; an interrupted stage never calls `done`."""
    for bar in tuple(_ACTIVE_BARS):
        bar.done()


class ProgressBar:
    """One bar per stage with amount, rate and remaining time; removed when the stage ends."""

    def __init__(self, color: bool) -> None:
        self._color = color
        self._progress: RichProgress | None = None
        self._task: TaskID | None = None

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        from rich import progress
        from rich.console import Console

        self.done()
        console = Console(stderr=True, no_color=not self._color)
        columns = [progress.TextColumn("  {task.description}"), progress.BarColumn(bar_width=30)]
        if total_bytes is None:
            columns += [progress.TimeElapsedColumn()]
        elif total_bytes < _BYTES_THRESHOLD:
            columns += [progress.MofNCompleteColumn(), progress.TimeRemainingColumn()]
        else:
            columns += [
                progress.DownloadColumn(),
                progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(),
            ]
        self._progress = progress.Progress(*columns, console=console, transient=True)
        self._progress.start()
        _ACTIVE_BARS.append(self)
        self._task = self._progress.add_task(name, total=total_bytes)

    def advance(self, amount: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)

    def done(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            _ACTIVE_BARS.remove(self)
        self._progress = None


class ProgressLines:
    """Prints a plain line every five seconds during a stage."""

    def __init__(self) -> None:
        self._name, self._completed, self._last_printed = "", 0, 0.0
        self._total: int | None = None

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        self._name, self._total, self._completed, self._last_printed = (
            name,
            total_bytes,
            0,
            time.monotonic(),
        )

    def advance(self, amount: int) -> None:
        self._completed += amount
        if time.monotonic() - self._last_printed >= _LINE_INTERVAL_SECONDS:
            self._last_printed = time.monotonic()
            print(
                f"    {self._name}: {_format_amount(self._completed, self._total)}",
                file=sys.stderr,
                flush=True,
            )

    def done(self) -> None:
        return


def _format_amount(completed: int, total: int | None) -> str:
    if total is None:
        return f"{completed / 1e6:.1f} MB"
    if total < _BYTES_THRESHOLD:
        return f"{completed}/{total}"
    return f"{completed / 1e6:.1f}/{total / 1e6:.1f} MB ({100 * completed // total} %)"

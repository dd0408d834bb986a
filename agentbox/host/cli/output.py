"""Results on stdout, everything else on stderr: for people, or as JSON lines with `--json`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.core.visible import escape_invisible
from agentbox.host.cli.stdio import supports_escapes

if TYPE_CHECKING:
    from agentbox.core.errors import AgentboxError
    from agentbox.core.progress import Progress


@dataclass(frozen=True)
class Output:
    """How this call speaks."""

    json: bool = False
    quiet: bool = False
    color: bool = True

    def line(self, text: str = "") -> None:
        """One line of the result, for people; nothing with `--json`. It may hold an agent's text: what a terminal would obey,
        and what would begin another line, is shown as an escape."""
        self.raw(escape_invisible(text))

    def block(self, text: str) -> None:
        """The same of several lines, where an agent's text can begin none: JSON, or a sentence of ours a line."""
        self.raw(_escape_lines(text))

    def raw(self, text: str) -> None:
        """Text of our own making, as it is: never an agent's."""
        if not self.json:
            print(text, flush=True)

    def document(self, data: Any) -> None:
        """The result for programs, one document; nothing without `--json`."""
        if self.json:
            print(json.dumps(data, indent=2, sort_keys=True, default=str), flush=True)

    def row(self, data: Any) -> None:
        """One of several results for programs, a line each; nothing without `--json`."""
        if self.json:
            print(json.dumps(data, sort_keys=True, default=str), flush=True)

    def note(self, text: str) -> None:
        """What is going on: stderr, silent with `--quiet`."""
        if self.quiet:
            return
        print(
            json.dumps({"note": text}) if self.json else _escape_lines(text),
            file=sys.stderr,
            flush=True,
        )

    def error(self, text: str) -> None:
        """What is wrong: stderr, always."""
        print(
            json.dumps({"problem": text}) if self.json else _escape_lines(text),
            file=sys.stderr,
            flush=True,
        )

    def report_error(self, error: AgentboxError) -> None:
        """Why this call failed: one sentence and a hint, or one JSON line with `--json`."""
        from agentbox.host.cli.progress_bars import clear_bars

        clear_bars()
        if self.json:
            payload = {
                "error": error.message,
                "hint": error.hint,
                "exit_code": int(error.exit_code),
            }
            print(json.dumps(payload), file=sys.stderr, flush=True)
            return
        hint = f"\n  {error.hint}" if error.hint else ""
        print(
            f"{self._clear_sequence}{_escape_lines(f'agentbox: {error.message}{hint}')}",
            file=sys.stderr,
            flush=True,
        )

    @property
    def redrawable(self) -> bool:
        """True when stdout is a terminal that may be erased."""
        return supports_escapes(sys.stdout) and not self.json

    @property
    def _clear_sequence(self) -> str:
        return "\r\x1b[K" if self.live else ""

    @property
    def live(self) -> bool:
        """True when a line on stderr may be redrawn."""
        return supports_escapes(sys.stderr) and not self.json and not self.quiet

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """One stage of a long command: its line appears when it ends, with what it said and how long it took."""
        stage, started = Stage(), time.monotonic()
        if self.live:
            print(f"{self._clear_sequence}  {name} ...", end="\r", file=sys.stderr, flush=True)
        yield stage
        seconds = time.monotonic() - started
        if self.quiet:
            return
        if self.json:
            record = {
                "stage": name,
                "result": stage.result,
                "seconds": round(seconds, 3),
                "state": "done",
            }
            print(json.dumps(record), file=sys.stderr, flush=True)
            return
        print(
            f"{self._clear_sequence}  {name:<10} {stage.result:<58} {seconds:6.1f} s",
            file=sys.stderr,
            flush=True,
        )

    def redraw(self, text: str) -> None:
        """A line that the next one overwrites; without a terminal nothing."""
        if self.live:
            import shutil

            width = shutil.get_terminal_size((80, 24)).columns - 3
            print(
                f"{self._clear_sequence}  {text[:width]}" if text else self._clear_sequence,
                end="\r",
                file=sys.stderr,
                flush=True,
            )

    def progress(self) -> Progress:
        """Bars on a terminal, a line every 5 s elsewhere, JSON lines with `--json`, nothing with `--quiet`."""
        from agentbox.host.cli.progress_bars import create_progress

        return create_progress(json=self.json, quiet=self.quiet, live=self.live, color=self.color)


def _escape_lines(text: str) -> str:
    return "\n".join(map(escape_invisible, text.split("\n")))


def pluralize(count: int, noun: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass
class Stage:
    """What a stage has to say at its end."""

    result: str = "done"

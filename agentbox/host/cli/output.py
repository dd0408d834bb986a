"""Output: results on stdout, everything else on stderr; as text, or as JSON with `--json`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.stdio import supports_escapes

if TYPE_CHECKING:
    from agentbox.core.errors import AgentboxError
    from agentbox.core.progress import Progress


@dataclass(frozen=True)
class Output:
    """Output options of one call."""

    json: bool = False
    quiet: bool = False
    color: bool = True

    def line(self, text: str = "") -> None:
        """Prints one line of the result; nothing with `--json`. The text may be an agent's: control
        characters and line breaks are escaped."""
        self.raw(escape_invisible(text))

    def block(self, text: str) -> None:
        """Like `line` for several lines; an agent's text must not contain line breaks here."""
        self.raw(_escape_lines(text))

    def raw(self, text: str) -> None:
        """Prints trusted text unescaped; never an agent's."""
        if not self.json:
            print(text, flush=True)

    def document(self, data: Any) -> None:
        """Prints the result as one JSON document; nothing without `--json`."""
        if self.json:
            print(json.dumps(data, indent=2, sort_keys=True, default=str), flush=True)

    def row(self, data: Any) -> None:
        """Prints one of several results as a JSON line; nothing without `--json`."""
        if self.json:
            print(json.dumps(data, sort_keys=True, default=str), flush=True)

    def note(self, text: str) -> None:
        """Prints a note on stderr; nothing with `--quiet`."""
        if self.quiet:
            return
        print(
            json.dumps({"note": text}) if self.json else _escape_lines(text),
            file=sys.stderr,
            flush=True,
        )

    def error(self, text: str) -> None:
        """Prints a problem on stderr, always."""
        print(
            json.dumps({"problem": text}) if self.json else _escape_lines(text),
            file=sys.stderr,
            flush=True,
        )

    def report_error(self, error: AgentboxError) -> None:
        """Prints why this call failed: a message and a hint, or one JSON line with `--json`."""
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
        """True when stdout is a terminal that can be cleared."""
        return supports_escapes(sys.stdout) and not self.json

    @property
    def _clear_sequence(self) -> str:
        return "\r\x1b[K" if self.live else ""

    @property
    def live(self) -> bool:
        """True when a line on stderr can be redrawn."""
        return supports_escapes(sys.stderr) and not self.json and not self.quiet

    @contextmanager
    def stage(self, name: str) -> Iterator[StageResult]:
        """One stage of a long command; at its end a line with its result and duration is
        printed."""
        stage, started = StageResult(), time.monotonic()
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
        """Prints a line that the next one overwrites; nothing without a terminal."""
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
        """The progress display for the flags of this call."""
        from agentbox.host.cli.progress_bars import create_progress

        return create_progress(json=self.json, quiet=self.quiet, live=self.live, color=self.color)


def _escape_lines(text: str) -> str:
    return "\n".join(map(escape_invisible, text.split("\n")))


def pluralize(count: int, noun: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass
class StageResult:
    """Result of a stage, printed at its end."""

    result: str = "done"

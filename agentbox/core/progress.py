"""How long work reports itself: one stage after the other, each with a total in bytes where that is known.

Whoever works calls `stage`, then `advance` as bytes arrive, then `done`. A stage that was interrupted is never done.
`advance` may be called from several threads when the caller serialises it, as `agentbox.lock` does.
"""

import json
import time
from typing import Protocol, TextIO

_JSON_INTERVAL_SECONDS = 0.5


class Progress(Protocol):
    """One stage at a time."""

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        """Begins a stage. None = nobody knows how much there is."""

    def advance(self, amount: int) -> None:
        """So many bytes more are done."""

    def done(self) -> None:
        """The stage reached its end."""


class NullProgress:
    """Says nothing."""

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        return

    def advance(self, amount: int) -> None:
        return

    def done(self) -> None:
        return


class JsonProgress:
    """One JSON object a line: `{"stage", "done", "total", "state": "running"|"done"}`, at most two a second."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._name = ""
        self._total: int | None = None
        self._done = 0
        self._written = 0.0

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        self._name, self._total, self._done = name, total_bytes, 0
        self._write("running")

    def advance(self, amount: int) -> None:
        self._done += amount
        if time.monotonic() - self._written >= _JSON_INTERVAL_SECONDS:
            self._write("running")

    def done(self) -> None:
        self._write("done")

    def _write(self, state: str) -> None:
        self._written = time.monotonic()
        record = {"stage": self._name, "done": self._done, "total": self._total, "state": state}
        self._stream.write(json.dumps(record, sort_keys=True) + "\n")
        self._stream.flush()

"""Progress reports of long operations: one stage after another, each with a total in bytes if
known. The worker calls `stage`, then `advance` as bytes arrive, then `done`. An interrupted stage
is never done. Calls of `advance` from several threads must be serialised by the caller.
"""

import json
import time
from typing import Protocol, TextIO

_JSON_INTERVAL_SECONDS = 0.5


class Progress(Protocol):
    """One stage at a time."""

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        """Starts a stage. None = the total is unknown."""

    def advance(self, amount: int) -> None:
        """Adds to the bytes done."""

    def done(self) -> None:
        """The stage is complete."""


class NullProgress:
    """Reports nothing."""

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        return

    def advance(self, amount: int) -> None:
        return

    def done(self) -> None:
        return


class JsonProgress:
    """One JSON object per line: `{"stage", "done", "total", "state": "running"|"done"}`, at most
    two a second.
    """

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

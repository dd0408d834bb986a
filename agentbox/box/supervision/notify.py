"""`notify(name)`: a program reports to the seal and the readiness evaluator that it is ready.
Standard library only.
"""

import json
import os
import time
from dataclasses import asdict, dataclass

from agentbox.core.canonical import canonical_json
from agentbox.core.files.atomic import replace
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths


@dataclass(frozen=True)
class ReadinessNote:
    """The process that wrote the note, with its start time (a recycled pid does not match), and the
    time (`time.monotonic`).
    """

    pid: int
    start_ticks: int
    mono: float

    def is_written_by(self, pid: int) -> bool:
        """True when the process that now has `pid` wrote this note."""
        return self.pid == pid and procfs.start_ticks(pid) == self.start_ticks


def notify(paths: Paths, name: str) -> None:
    """Writes `ready.d/<name>` for the calling process, by rename. Raises OSError."""
    pid = os.getpid()
    note = ReadinessNote(pid, procfs.start_ticks(pid) or 0, time.monotonic())
    replace(paths.ready_dir / name, canonical_json(asdict(note)), durable=False)


def remove_note(paths: Paths, name: str) -> None:
    """Removes the note of a program that ends; watchers of the directory check immediately. Raises
    OSError.
    """
    (paths.ready_dir / name).unlink(missing_ok=True)


def read_note(paths: Paths, name: str) -> ReadinessNote | None:
    """The note of a program; None when it is missing or invalid."""
    try:
        note = json.loads((paths.ready_dir / name).read_bytes())
        return ReadinessNote(int(note["pid"]), int(note["start_ticks"]), float(note["mono"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None

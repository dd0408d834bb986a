"""`notify(name)`: a program tells the seal and the readiness evaluator that it works now. Standard library only."""

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
    """Who said it: a pid with its start time (so that a recycled pid is not believed), and when (`time.monotonic`)."""

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
    """A program that ends takes its note back: whoever watches the folder looks at once. Raises OSError."""
    (paths.ready_dir / name).unlink(missing_ok=True)


def read_note(paths: Paths, name: str) -> ReadinessNote | None:
    """The note of a program, or None when there is none, or none that can be understood."""
    try:
        note = json.loads((paths.ready_dir / name).read_bytes())
        return ReadinessNote(int(note["pid"]), int(note["start_ticks"]), float(note["mono"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None

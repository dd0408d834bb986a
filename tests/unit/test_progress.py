"""Progress for programs: JSON lines."""

import json
from io import StringIO

from agentbox.core.progress import JsonProgress, NullProgress


def test_stages_as_json_lines() -> None:
    """Begin and end of a stage are always shown, what is between not at every step."""
    stream = StringIO()
    progress = JsonProgress(stream)
    progress.stage("one", 1000)
    for _ in range(1000):
        progress.advance(1)
    progress.done()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert rows[0] == {"stage": "one", "done": 0, "total": 1000, "state": "running"}
    assert rows[-1] == {"stage": "one", "done": 1000, "total": 1000, "state": "done"}
    assert len(rows) < 100


def test_silence() -> None:
    """The null progress accepts everything and prints nothing."""
    progress = NullProgress()
    progress.stage("one")
    progress.advance(1)
    progress.done()

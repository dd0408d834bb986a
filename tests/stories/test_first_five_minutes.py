"""The session that README.md shows, played on the process engine."""

import re

from first_five_minutes import CAST, record
from recording import Recording

_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{4,27}|[0-9a-f]{64}|--engine \w+ ")


def commands(session: Recording) -> list[str]:
    """What is typed, without ids and the name of the engine."""
    text = "".join(part for _, part in session.events)
    return [_VARIES.sub("", line) for line in text.splitlines() if line.startswith("$ ")]


def test_the_commands_of_the_picture_work() -> None:
    """Each ends with its expected exit code, and the recording has the same commands."""
    played = record("process")
    assert commands(played) == commands(Recording.read(CAST))
    text = "".join(part for _, part in played.events)
    for line in (
        "AssertionError",
        "tests pass",
        "Could not resolve host",
        "Permission denied",
        "+    return a + b",
    ):
        assert line in text

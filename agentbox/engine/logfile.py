"""Reading a log file as `docker logs` would: its last lines, then what is added."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

_POLL_SECONDS = 0.2


def lines_of(path: Path, *, follow: bool, lines: int | None) -> Iterator[str]:
    """Lines without their ends. With `follow` it goes on until the caller stops. A missing file has no lines."""
    if not path.exists():
        return
    with path.open(errors="replace") as stream:
        kept = deque(stream, maxlen=lines) if lines is not None else deque(stream)
        yield from (line.rstrip("\n") for line in kept)
        while follow:
            if line := stream.readline():
                yield line.rstrip("\n")
            else:
                time.sleep(_POLL_SECONDS)

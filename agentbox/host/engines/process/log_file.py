"""Reads a log file as `docker logs` does: its last lines, then new ones, across its rotation."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from agentbox.box.supervision.log_rotation import rotated_path

_POLL_SECONDS = 0.2


def read_lines(path: Path, *, follow: bool, lines: int | None) -> Iterator[str]:
    """Yield lines without line ends; with `follow` until the caller stops. A missing file has no
    lines.
    """
    if not path.exists():
        return
    stream = path.open(errors="replace")
    try:
        tail = deque[str](maxlen=lines)
        if rotated_path(path).exists():
            with rotated_path(path).open(errors="replace") as previous:
                tail.extend(previous)
        tail.extend(stream)
        yield from (line.rstrip("\n") for line in tail)
        while follow:
            rotated = _was_replaced(
                path, stream
            )  # checked before the rest is read, so that nothing is missed
            if line := stream.readline():
                yield line.rstrip("\n")
            elif rotated:
                stream.close()
                stream = path.open(errors="replace")
            else:
                time.sleep(_POLL_SECONDS)
    finally:
        stream.close()


def _was_replaced(path: Path, stream: TextIO) -> bool:
    """True if the path of an open file has a new file."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False

"""Standard streams: replaced where the caller closed them, and discarded after write errors."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final, TextIO

_MODES: Final = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
_DUMB_TERMINALS: Final = ("dumb", "unknown")


def reopen_closed() -> None:
    """Reopens closed streams: stdin is empty, writing to stdout fails as in a shell, and stderr is
    discarded. So no file opened later gets descriptor 0, 1 or 2."""
    for descriptor, (name, mode) in enumerate(_MODES):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, mode)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)
        setattr(
            sys,
            name,
            open(  # noqa: SIM115
                descriptor, "r" if descriptor == 0 else "w", encoding="utf-8", closefd=False
            ),
        )


def discard_unwritten() -> None:
    """Discards unwritable output, so that the interpreter does not retry it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(null, stream.fileno())
    os.close(null)


def supports_escapes(stream: TextIO) -> bool:
    """True for a terminal that supports escape sequences."""
    from agentbox.core.paths import environment

    return stream.isatty() and environment().get("TERM") not in _DUMB_TERMINALS

"""The three standard streams: there even where the caller closed them, and never the reason of a traceback at the end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final, TextIO

_MODES: Final = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
_DUMB_TERMINALS: Final = ("dumb", "unknown")


def reopen_closed() -> None:
    """Standard input is empty where it was closed, writing to standard output fails as it does in a shell, and what would go
    to standard error is lost. No file that is opened later gets one of their numbers."""
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
    """What could not be written is given up, so that the interpreter does not try it once more at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(null, stream.fileno())
    os.close(null)


def supports_escapes(stream: TextIO) -> bool:
    """True for a terminal that obeys escapes."""
    from agentbox.core.paths import environment

    return stream.isatty() and environment().get("TERM") not in _DUMB_TERMINALS

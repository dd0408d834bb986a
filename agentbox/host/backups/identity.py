"""Identities from a file or from stdin; never from the command line or the environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode

MAX_BYTES: Final = 1 << 20


def read_identities(source: str | None) -> list[Any]:
    """The identities of `--identity`: a file, `-` for stdin, None for none. A terminal prompts
    without echo. Raises AgentboxError (exit 2).
    """
    from agentbox.backup.archive.keys import parse_identities

    if source is None:
        return []
    if "SECRET-KEY-" in source.upper():
        raise AgentboxError(
            "cannot read an identity: it is on the command line, where other users see it",
            "Put it into a file, or on stdin: --identity -. Others may have seen this one: make "
            "another with `agentbox backup init`.",
            exit_code=ExitCode.USAGE,
        )
    if source == "-":
        return parse_identities(_stdin(), "stdin")
    try:
        with Path(source).open("rb") as file:
            return parse_identities(file.read(MAX_BYTES), source)
    except OSError as error:
        raise AgentboxError(
            f"cannot read the identity {source}: {error.strerror}",
            "Name a readable file, or give the identity on stdin: --identity -",
            exit_code=ExitCode.USAGE,
        ) from error


def _stdin() -> bytes:
    if sys.stdin.isatty():
        import click

        return str(click.prompt("identity", hide_input=True, err=True)).encode()
    return sys.stdin.buffer.read(MAX_BYTES)

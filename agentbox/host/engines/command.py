"""Runs external programs: captures the output and turns a failure into one message with its last
lines.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.paths import environment
from agentbox.host.engines.interrupts import deferred_interrupts

_TAIL = 20
_COMPOSE_END = (
    "Encountered errors while bringing up the project."  # printed by compose 1.29 after the errors
)


def run(
    argv: Sequence[str],
    *,
    doing: str,
    hint: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    exit_code: ExitCode = ExitCode.ENGINE,
    uninterruptible: bool = False,
) -> str:
    """Runs `argv` and returns its stdout. Raises AgentboxError `cannot <doing>: …` when it fails or
    times out.

    `uninterruptible`: Ctrl-C takes effect after the program has ended; a partial result would cause
    errors later.
    """
    try:
        with deferred_interrupts() if uninterruptible else nullcontext():
            done = subprocess.run(
                argv,
                cwd=cwd,
                env={**environment(), **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                start_new_session=uninterruptible,
            )
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot {doing}: {argv[0]} is not installed", hint, exit_code=ExitCode.PREREQUISITE
        ) from error
    except subprocess.TimeoutExpired as error:
        raise AgentboxError(
            f"cannot {doing}: {argv[0]} did not end in {timeout:.0f} s", hint, exit_code=exit_code
        ) from error
    if done.returncode != 0:
        output = done.stderr.strip() or done.stdout.strip() or describe_exit(done.returncode)
        raise AgentboxError(f"cannot {doing}: {failure_text(output)}", hint, exit_code=exit_code)
    return done.stdout


def failure_text(output: str) -> str:
    """Return the line with the error, followed by the other lines, each with a leading bar."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()][-_TAIL:]
    error_lines = [
        line for line in lines if "error" in line.lower() and line.strip() != _COMPOSE_END
    ]
    main_line = error_lines[-1] if error_lines else lines[-1]
    other_lines = [f"  | {line}" for line in lines if line is not main_line]
    return "\n".join([main_line.strip(), *other_lines])


def succeeds(argv: Sequence[str], timeout: float = 10) -> bool:
    """True if the program exists, ends in time and exits with 0."""
    try:
        return (
            subprocess.run(
                argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False
            ).returncode
            == 0
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False

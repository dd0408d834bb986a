"""Runs a program of the host and captures its output."""

import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.paths import environment

_REPEATED_ERROR = re.compile(
    r"Couldn't find any package by (?:glob|regex)"
)  # apt's second and third line for one missing package


@dataclass(frozen=True)
class CommandResult:
    """The result of a program."""

    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        """The lines of stderr that begin with E or error, else the last one."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        errors = [
            line
            for line in lines
            if line.lower().startswith(("e:", "error")) and not _REPEATED_ERROR.search(line)
        ]
        return "; ".join(errors or lines[-1:]) or describe_exit(self.code)


def run(
    argv: Sequence[str],
    *,
    extra: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> CommandResult:
    """Runs a program to its end in the C locale, with `extra` added to the environment. An
    interrupt ends it too.

    After `timeout` seconds the program is killed, which the result reports. Raises AgentboxError
    (exit 3) if it is not installed.
    """
    env = {**environment(), "LC_ALL": "C", **(extra or {})}
    try:
        done = subprocess.run(
            argv,
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return CommandResult(-signal.SIGKILL, "", f"timed out after {timeout} s")
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot run {argv[0]}: not installed",
            f"Install {argv[0]}.",
            exit_code=ExitCode.PREREQUISITE,
        ) from error
    return CommandResult(done.returncode, done.stdout, done.stderr)

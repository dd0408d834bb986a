"""Runs one child for a probe: own process group, closed stdin, minimal environment, killed with its
group at the end.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}


@dataclass(frozen=True)
class ChildResult:
    """The end of a child: negative `code` for a signal, as in subprocess; None when it was killed
    on timeout.
    """

    code: int | None
    stdout: str
    stderr: str


def run_child(
    argv: Sequence[str], seconds: float, env: Mapping[str, str] | None = None
) -> ChildResult:
    """`env` extends the minimal environment. Raises OSError when it cannot be started. No process
    of its group is alive when this returns.
    """
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, **(env or {})},
        cwd="/",
        process_group=0,
    )
    code: int | None = None
    try:
        out, err = child.communicate(timeout=seconds)
        code = child.returncode
    except subprocess.TimeoutExpired:
        out, err = b"", b""
    finally:
        _kill_group(child)
    return ChildResult(code, out.decode(errors="replace"), err.decode(errors="replace"))


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """The group exists while any member does; its number is not reused until then."""
    with suppress(ProcessLookupError):  # the group is empty
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()

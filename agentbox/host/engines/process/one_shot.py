"""One program on the volumes of a process-engine box: a process with the prefix of the volume."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.host.engines.command import failure_text
from agentbox.host.engines.locations import process_root
from agentbox.host.engines.one_shot import HINT, OneShot, stdin_of
from agentbox.host.engines.process.privilege_drop import become_box_user
from agentbox.host.engines.process.volumes import make_volume, volume_prefix


def run_once(shot: OneShot, doing: str, stdin: IO[bytes] | None = None) -> str:
    """Returns its stdout. Raises AgentboxError (exit 6) if it fails or takes too long."""
    root = process_root(shot.name, shot.state)
    with wrap_os_errors(f"make the volumes of {shot.name}"):
        prefix = volume_prefix(root, shot.volumes)
        make_volume(prefix)
    other = root if shot.of is None else process_root(*shot.of)
    beside = "" if shot.beside is None else str(Paths(volume_prefix(other, shot.beside)).state)
    python = str(Path(shot.python or sys.prefix) / "bin" / "python")
    current = environment()
    try:
        with stdin_of(stdin) as stream:
            done = subprocess.run(
                [python, "-I", "-m", shot.module, *shot.argv(beside)],
                cwd=prefix,
                env={
                    "PATH": current.get("PATH", "/usr/bin:/bin"),
                    "HOME": str(prefix),
                    PREFIX_VARIABLE: str(prefix),
                },
                stdin=stream,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=shot.seconds,
                preexec_fn=become_box_user,
                check=False,
            )
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot {doing}: {python} is missing",
            "Make that environment again: run ./agentbox.sh --version in its checkout.",
            exit_code=ExitCode.ENGINE,
        ) from error
    except subprocess.TimeoutExpired as error:
        raise AgentboxError(
            f"cannot {doing}: it did not end in {shot.seconds:.0f} s",
            HINT,
            exit_code=ExitCode.ENGINE,
        ) from error
    if done.returncode != 0:
        output = done.stderr.strip() or done.stdout.strip() or describe_exit(done.returncode)
        raise AgentboxError(
            f"cannot {doing}: {failure_text(output)}", HINT, exit_code=ExitCode.ENGINE
        )
    return done.stdout

"""Runs Nix with progress, and reports failures in one sentence."""

import re
import subprocess
from collections.abc import Sequence

from agentbox.core import mount_namespace
from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.progress import NullProgress, Progress
from agentbox.host.image.nix_log import BuildLog
from agentbox.host.packages.store.nix_store import nix_environment

_DISK_FULL = "No space left on device"
_MISSING_FILE = re.compile(r"(?P<file>\S[^\n']*?) is not in the store: run agentbox fetch")


def run_nix(
    arguments: Sequence[str], progress: Progress | None = None, *, doing: str = "build the image"
) -> list[str]:
    """Runs `nix` to its end. Returns the names of the derivations that it built.

    Raises AgentboxError: exit 4 if a locked file is not in the store, 5 if the lock does not match,
    6 otherwise, with the last lines of the failed derivation; 3 if Nix is not installed.
    """
    log = BuildLog(progress or NullProgress())
    argv = [
        "nix",
        *arguments,
        "--log-format",
        "internal-json",
        "--max-jobs",
        "auto",
        "--no-write-lock-file",
    ]
    try:
        process = subprocess.Popen(
            argv,
            env=nix_environment(),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=mount_namespace.preexec_function(),
        )
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot {doing}: Nix is not installed",
            "`agentbox up --yes` installs it, or: apt install nix-bin",
            exit_code=ExitCode.PREREQUISITE,
        ) from error
    with process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                log.feed(line)
        except BaseException:
            process.terminate()  # Nix removes unfinished outputs
            raise
    if process.returncode:
        raise _failure(log, doing, process.returncode)
    return log.built


def _failure(log: BuildLog, doing: str, code: int) -> AgentboxError:
    text = "\n".join([*log.failure_lines(), *log.errors])
    if match := _MISSING_FILE.search(text):
        sentence = f"cannot {doing}: {match['file'].strip()} is not in the store"
        return AgentboxError(sentence, "Run `agentbox fetch`.", exit_code=ExitCode.FETCH)
    if _DISK_FULL in text:
        return AgentboxError(
            f"cannot {doing}: the disk is full",
            "Free some space below /nix and /tmp.",
            exit_code=ExitCode.ENGINE,
        )
    lines = log.failure_lines()
    if "run agentbox lock" in text:
        return AgentboxError(
            f"cannot {doing}: {lines[0].removeprefix('error: ')}",
            "Run `agentbox lock`.",
            exit_code=ExitCode.LOCK,
        )
    cause = (
        f"{log.failed_derivation() or 'Nix'} failed: {lines[-1] if lines else describe_exit(code)}"
    )
    context = "".join(f"\n  | {line}" for line in lines[:-1])
    return AgentboxError(
        f"cannot {doing}: {cause}{context}",
        "Fix the error, then run the command again: finished builds are kept.",
        exit_code=ExitCode.ENGINE,
    )


def read_nix(arguments: Sequence[str]) -> str:
    """Return the standard output of a short Nix command. Raises AgentboxError (exit 6)."""
    done = subprocess.run(
        ["nix", *arguments],
        env=nix_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AgentboxError(
            f"cannot run nix {arguments[0]}: {done.stderr.strip()}", exit_code=ExitCode.ENGINE
        )
    return done.stdout

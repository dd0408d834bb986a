"""Calls of the program restic."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from agentbox.backup.errors import BUSY, DAMAGED, ENGINE, FULL, IDENTITY, BackupError
from agentbox.core.errors import ExitCode

_CAUSES: Final = (
    ("wrong password", IDENTITY, ExitCode.USAGE, "the password is not one of this repository"),
    ("repository is already locked", BUSY, ExitCode.BUSY, "another backup is running"),
    ("no space left", FULL, ExitCode.PREREQUISITE, "it is full"),
    ("ciphertext verification failed", DAMAGED, ExitCode.BAD, "it is damaged"),
)
"""What restic says, and what it means."""


@dataclass(frozen=True)
class Restic:
    """`repository` is a folder, or an address that restic knows. The password is in a file, so that
    it is in no argument and no environment. Methods raise BackupError.
    """

    repository: str
    password_file: Path
    program: str = "restic"

    def run(self, action: str, *words: str, cwd: Path | None = None) -> str:
        """What restic printed. `action` is for messages: `make a backup`."""
        try:
            done = subprocess.run(
                self._argv(words), cwd=cwd, env=_ENVIRONMENT, capture_output=True, check=False
            )
        except FileNotFoundError as error:
            raise self._missing(action) from error
        if done.returncode:
            raise _failure(action, done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def rows(self, action: str, *words: str) -> list[Mapping[str, Any]]:
        """The JSON array that restic printed; none for null."""
        found = json.loads(self.run(action, "--json", *words) or "null")
        return [row for row in found or () if isinstance(row, dict)]

    @contextmanager
    def output(self, action: str, *words: str) -> Iterator[IO[bytes]]:
        """What restic prints, while it prints it. A failure is raised at the end of the block,
        before what the block raised for want of bytes.
        """
        try:
            process = subprocess.Popen(
                self._argv(words), env=_ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except FileNotFoundError as error:
            raise self._missing(action) from error
        assert process.stdout is not None
        failure: Exception | None = None
        with process:
            try:
                yield process.stdout
                while process.stdout.read(1 << 16):
                    pass
            except Exception as error:  # noqa: BLE001 - raised below, unless restic failed
                failure = error
            except BaseException:
                process.kill()
                raise
            if failure is not None:
                process.stdout.close()
            assert process.stderr is not None
            told = process.stderr.read().decode(errors="replace")
        if process.returncode > 0 and "broken pipe" not in told:
            raise _failure(action, told) from failure
        if failure is not None:
            raise failure

    def _argv(self, words: Sequence[str]) -> list[str]:
        fixed = ["--no-cache", "--password-file", str(self.password_file)]
        return [self.program, "--repo", self.repository, *fixed, *words]

    def _missing(self, action: str) -> BackupError:
        return BackupError(
            ENGINE, f"cannot {action}: {self.program} is not installed", "Install restic."
        )


_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def _failure(action: str, told: str) -> BackupError:
    for words, reason, code, why in _CAUSES:
        if words in told.lower():
            return BackupError(reason, f"cannot {action}: {why}", _last_line(told), exit_code=code)
    return BackupError(ENGINE, f"cannot {action}: restic failed", _last_line(told))


def _last_line(told: str) -> str:
    lines = [line for line in told.splitlines() if line.strip()]
    return f"restic said: {lines[-1]}" if lines else ""

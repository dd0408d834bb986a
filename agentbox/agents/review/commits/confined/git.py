"""Runs git in a repository that agent-host has made, with bounded output."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

MAX_OUTPUT: Final = 64 << 20  # bytes of one command
_MAX_ERROR: Final = 4 << 10  # bytes, from the beginning and in its order
_CHUNK: Final = 1 << 20


class GitFailed(Exception):
    """`words` is what git wrote to stderr."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class TooMuch(Exception):
    """A bound was reached; the text names it."""


class Git:
    """git in one repository. `program` is its absolute path, `directory` the repository."""

    def __init__(self, program: str, directory: Path) -> None:
        self.program, self.directory = program, directory
        self._env = environment(directory)

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        accepted: tuple[int, ...] = (),
        max_items: int = MAX_OUTPUT,
    ) -> bytes:
        """The output; an exit code in `accepted` is not an error. Raises GitFailed, and TooMuch
        beyond MAX_OUTPUT or that many items that end with a NUL."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(data)
            given.seek(0)
            process = self._start(arguments, given, subprocess.PIPE, errors)
            with process:
                assert process.stdout is not None
                output, items = bytearray(), 0
                while chunk := process.stdout.read(_CHUNK):
                    output += chunk
                    items += chunk.count(b"\0")
                    if len(output) > MAX_OUTPUT or items > max_items:
                        process.kill()
                        raise TooMuch(f"git {arguments[0]} lists too much: {len(output)} bytes")
            if process.returncode not in accepted:
                _check(process, errors)
            return bytes(output)

    def write(self, target: Path, *arguments: str) -> None:
        """Write the output to that new file. Raises GitFailed."""
        with target.open("xb") as out, tempfile.TemporaryFile() as errors:
            with self._start(arguments, subprocess.DEVNULL, out, errors) as process:
                process.wait()
            _check(process, errors)

    def pipe(
        self, arguments: Sequence[str], data: bytes, other: "Git", receiver: Sequence[str]
    ) -> None:
        """Pass the output of a command to one of another repository. Raises GitFailed."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as errors,
            tempfile.TemporaryFile() as other_errors,
        ):
            given.write(data)
            given.seek(0)
            with self._start(arguments, given, subprocess.PIPE, errors) as sender:
                assert sender.stdout is not None
                with other._start(
                    receiver, sender.stdout, subprocess.DEVNULL, other_errors
                ) as process:
                    sender.stdout.close()
                    process.wait()
            _check(process, other_errors)
            _check(sender, errors)

    def batch(self, *arguments: str) -> "Batch":
        """A `cat-file` that answers one request after the other."""
        return Batch(
            self._start(
                ("cat-file", *arguments), subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL
            )
        )

    def _start(
        self,
        arguments: Sequence[str],
        given: int | IO[bytes],
        out: int | IO[bytes],
        errors: int | IO[bytes],
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [self.program, f"--git-dir={self.directory}", "--no-replace-objects", *arguments],
            stdin=given,
            stdout=out,
            stderr=errors,
            env=self._env,
            cwd=self.directory,
        )


class Batch:
    """Objects of a repository, one request after the other. A context manager."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def header(self, object_id: str) -> tuple[str, int]:
        """Type and size of an object. Raises GitFailed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{object_id}\n".encode())
        self._process.stdin.flush()
        words = self._process.stdout.readline(1_000).decode("ascii", "replace").split()
        if len(words) != 3 or words[0] != object_id:
            raise GitFailed(f"missing object {object_id}")
        return words[1], int(words[2])

    def content(self, object_id: str) -> bytes:
        """The content of an object, whose size the caller knows. Raises GitFailed."""
        _, size = self.header(object_id)
        assert self._process.stdout is not None
        data = self._process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise GitFailed(f"cannot read object {object_id}")
        return data[:-1]


def environment(directory: Path) -> dict[str, str]:
    """The complete environment of git: nothing of the system's or a user's configuration applies.
    git-config(1), git(1)."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "HOME": str(directory),
        "TMPDIR": tempfile.gettempdir(),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
    }


def _check(process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> None:
    if process.returncode:
        errors.seek(0)
        words = errors.read(_MAX_ERROR).decode("utf-8", "surrogateescape").strip()
        raise GitFailed(words or f"git ended with {process.returncode}")

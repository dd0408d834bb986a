"""Starts programs of a box, and commands, by forking a process that has their modules already
(`support.program_starter`): one for each program and test process, which ends with it.

A test about the start itself, or about what a program imports, starts `python -m` instead.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from agentbox.core.paths import environment

COMMAND = "agentbox"
_OF_A_BOX = ("agentbox.agents", "agentbox.api", "agentbox.gateway")  # have a starter each


class ForkedProgram:
    """A running program, with the part of subprocess.Popen's interface that tests use."""

    def __init__(
        self,
        module: str,
        env: Mapping[str, str],
        output: IO[bytes],
        *,
        words: Sequence[str] = (),
        folder: Path | None = None,
        given: IO[bytes] | None = None,
        errors: IO[bytes] | None = None,
    ) -> None:
        """Starts `python -m module WORDS` in a session of its own and in `folder`, by default this
        process's. stdin is `given`, by default empty; stdout goes to `output`, stderr to `errors`,
        by default too. Raises RuntimeError if it cannot."""
        self.returncode: int | None = None
        starter = module if module in _OF_A_BOX else COMMAND
        request = {
            "module": module,
            "env": dict(env),
            "words": list(words),
            "folder": str(folder or Path.cwd()),
        }
        self._result, result = os.pipe()
        empty = os.open(os.devnull, os.O_RDONLY)
        standard = [given or empty, output, errors or output]
        numbers = [file if isinstance(file, int) else file.fileno() for file in standard]
        try:
            self.pid = _starter(starter, os.getpid()).start(request, [*numbers, result])
        except BaseException:
            os.close(self._result)
            raise
        finally:
            os.close(result)
            os.close(empty)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._read(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired after so many seconds."""
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["forked program", str(self.pid)], timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._result], [], [], seconds)[0]:
            # Nothing is written if the starter was killed, and then the program with it.
            self.returncode = int(os.read(self._result, 16) or -signal.SIGTERM)
            os.close(self._result)
        return self.returncode


class _Starter:
    """The process that forks one program's processes."""

    def __init__(self, module: str) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        names = [name for name in ("PATH", "HOME") if name in environment()]
        words = ("-I", "-m", "support.program_starter", str(theirs.fileno()), module)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                env={name: environment()[name] for name in names},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(self, request: Mapping[str, object], descriptors: Sequence[int]) -> int:
        """The pid."""
        with self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
            answer = self._control.recv(32)
        if not answer:
            raise RuntimeError("the process that starts programs has ended")
        return int(answer)


@cache
def _starter(module: str, _process: int) -> _Starter:
    """That of this test process: a forked one has its own."""
    return _Starter(module)


def run_program(
    module: str,
    *words: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    given: bytes = b"",
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """`python -m module WORDS` to its end, by default with this process's environment and folder.
    Raises subprocess.TimeoutExpired after so many seconds, when it was killed."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(given)
        stdin.seek(0)
        program = ForkedProgram(
            module,
            environment() if env is None else env,
            stdout,
            words=words,
            folder=folder,
            given=stdin,
            errors=stderr,
        )
        try:
            code = program.wait(timeout)
        except BaseException:
            program.kill()
            program.wait()
            raise
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, code, stdout.read(), stderr.read())


def run_command(
    *words: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    given: str | bytes = "",
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """`agentbox WORDS` as `run_program` does; its output is text."""
    stdin = given.encode() if isinstance(given, str) else given
    ended = run_program(COMMAND, *words, env=env, folder=folder, given=stdin, timeout=timeout)
    out, errors = (
        data.decode(errors="replace").replace("\r\n", "\n") for data in (ended.stdout, ended.stderr)
    )
    return subprocess.CompletedProcess(ended.args, ended.returncode, out, errors)

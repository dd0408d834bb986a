"""Starts programs of a box by forking a process that has their modules already
(`support.program_starter`): one for each program and test process, which ends with it.

A test about the start itself, or about what a program imports, starts `python -I -m` instead.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from typing import IO

from agentbox.core.paths import environment


class ForkedProgram:
    """A running program, with the part of subprocess.Popen's interface that tests use."""

    def __init__(self, module: str, env: Mapping[str, str], output: IO[bytes]) -> None:
        """Starts `python -I -m module` in a session of its own; stdout and stderr go to `output`.
        Raises RuntimeError if it cannot."""
        self.returncode: int | None = None
        self._result, result = os.pipe()
        try:
            self.pid = _starter(module, os.getpid()).start(env, output.fileno(), result)
        except BaseException:
            os.close(self._result)
            raise
        finally:
            os.close(result)

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

    def start(self, env: Mapping[str, str], output: int, result: int) -> int:
        """The pid."""
        with self._lock:
            socket.send_fds(self._control, [json.dumps(dict(env)).encode()], [output, result])
            answer = self._control.recv(32)
        if not answer:
            raise RuntimeError("the process that starts programs has ended")
        return int(answer)


@cache
def _starter(module: str, _process: int) -> _Starter:
    """That of this test process: a forked one has its own."""
    return _Starter(module)

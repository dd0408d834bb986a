"""A canary: an agent's sandbox that tries to reach targets outside of it.

Each access that must be refused is first performed from outside, so that no other reason can
explain the refusal. The targets are also checked afterwards: the report of the sandboxed program
alone is not trusted.
"""

import contextlib
import errno
import json
import os
import secrets
import socket
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from agentbox.sandbox.canary import prober

DENIED: Final = ("read", "write", "attribute", "connect", "syscall", "signal", "socket")
ALLOWED: Final = "allowed-write"
RULES: Final = (*DENIED, ALLOWED)
_MODE = 0o600
_REFUSALS = (errno.EACCES, errno.EPERM)
_DIRECTORY = "canary"


class CanaryTargets:
    """The targets outside of the canary's sandbox: a directory of the control plane, a listening
    socket, this process.

    A context manager; blocking, a few file operations. Raises OSError if an access fails from
    outside too.
    """

    def __init__(self, parent: Path) -> None:
        self.directory = parent / _DIRECTORY
        self.secret, self.new_file = self.directory / "secret", self.directory / "made"
        self.token = secrets.token_hex(8)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    @property
    def port(self) -> int:
        """Of the listening socket on 127.0.0.1."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        try:
            self._create()
        except BaseException:
            self._listener.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            self.new_file.unlink(missing_ok=True)

    def argv(self, allowed_path: Path) -> tuple[str, ...]:
        """The prober's command line; `allowed_path` is a path where it may create a file."""
        source = Path(prober.__file__).read_text(encoding="utf-8")
        arguments = (self.secret, self.new_file, self.port, os.getpid(), allowed_path, self.token)
        return (sys.executable, "-I", "-S", "-B", "-c", source, *map(str, arguments))

    def enforced_rules(self, output: bytes, allowed_path: Path) -> tuple[str, ...]:
        """The enforced rules, in order. `output` is all that the prober printed."""
        results = _parse_output(output)
        reached = {
            "write": self.new_file.exists(),
            "attribute": stat.S_IMODE(self.secret.stat().st_mode) != _MODE,
            "connect": self._was_connected(),
        }
        enforced = [
            rule
            for rule in DENIED
            if results.get(rule) in _REFUSALS and not reached.get(rule, False)
        ]
        if results.get(ALLOWED) == 0 and _read_text(allowed_path) == self.token:
            enforced.append(ALLOWED)
        return tuple(enforced)

    def _create(self) -> None:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self.secret.unlink(missing_ok=True)
        self.new_file.unlink(missing_ok=True)
        with os.fdopen(
            os.open(self.secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "w"
        ) as file:
            file.write(self.token)
        self.secret.chmod(_MODE)
        self.secret.read_text(encoding="ascii")
        self.new_file.touch(mode=_MODE)
        self.new_file.unlink()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(4)
        with socket.create_connection(("127.0.0.1", self.port), timeout=1):
            self._listener.accept()[0].close()
        self._listener.setblocking(False)
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        socket.socket(socket.AF_UNIX).close()

    def _was_connected(self) -> bool:
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


def _parse_output(output: bytes) -> Mapping[str, int]:
    try:
        results = json.loads(output)
    except ValueError:
        return {}
    return results if isinstance(results, dict) else {}


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""

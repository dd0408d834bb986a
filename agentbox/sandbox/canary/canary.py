"""A canary: one agent's sandbox that is asked to hold, with bait that would be taken if it did not.

Each thing that must be refused is first done from outside, so that nothing is refused for another reason. Each is looked
at afterwards too: what a refused program says is not believed alone.
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
_FOLDER = "canary"


class Bait:
    """What lies outside of the canary's sandbox: a folder of the control plane's, a listener, this process.

    A context manager; blocking, a few file operations. Raises OSError when a thing cannot be done from outside either.
    """

    def __init__(self, closed: Path) -> None:
        self.folder = closed / _FOLDER
        self.secret, self.there = self.folder / "secret", self.folder / "made"
        self.word = secrets.token_hex(8)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    @property
    def port(self) -> int:
        """Of the listener on 127.0.0.1."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        try:
            self._lay()
        except BaseException:
            self._listener.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            self.there.unlink(missing_ok=True)

    def argv(self, mine: Path) -> tuple[str, ...]:
        """The prober's command line; `mine` is a path where it may make a file."""
        source = Path(prober.__file__).read_text(encoding="utf-8")
        words = (self.secret, self.there, self.port, os.getpid(), mine, self.word)
        return (sys.executable, "-I", "-S", "-B", "-c", source, *map(str, words))

    def held(self, said: bytes, mine: Path) -> tuple[str, ...]:
        """The rules that held, in their order. `said` is all that the prober printed."""
        answers = _answers(said)
        taken = {
            "write": self.there.exists(),
            "attribute": stat.S_IMODE(self.secret.stat().st_mode) != _MODE,
            "connect": self._visited(),
        }
        held = [rule for rule in DENIED if answers.get(rule) in _REFUSALS and not taken.get(rule, False)]
        if answers.get(ALLOWED) == 0 and _text(mine) == self.word:
            held.append(ALLOWED)
        return tuple(held)

    def _lay(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.secret.unlink(missing_ok=True)
        self.there.unlink(missing_ok=True)
        with os.fdopen(os.open(self.secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "w") as file:
            file.write(self.word)
        self.secret.chmod(_MODE)
        self.secret.read_text(encoding="ascii")
        self.there.touch(mode=_MODE)
        self.there.unlink()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(4)
        with socket.create_connection(("127.0.0.1", self.port), timeout=1):
            self._listener.accept()[0].close()
        self._listener.setblocking(False)
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        socket.socket(socket.AF_UNIX).close()

    def _visited(self) -> bool:
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


def _answers(said: bytes) -> Mapping[str, int]:
    try:
        found = json.loads(said)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""

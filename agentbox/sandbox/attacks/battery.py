"""Tries lines, each in a process of its own, so that one that is killed ends no other."""

import os
import select
import signal
from collections.abc import Iterable, Iterator

from agentbox.sandbox.attacks.attempts import name_of
from agentbox.sandbox.attacks.catalogue import BY_NAME, LINES
from agentbox.sandbox.attacks.line import ABSENT, Absent, Facts, Line

_SECONDS = 40.0


def run(facts: Facts, names: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Name and reply of each line. A line that needs an agent of its own is tried in this very process, as the last."""
    asked = [BY_NAME[name] for name in names] or [line for line in LINES if not line.alone]
    for line in asked:
        yield line.name, _reply(line, facts) if line.alone else _apart(line, facts)


def _reply(line: Line, facts: Facts) -> str:
    try:
        return line.attempt(facts)
    except Absent as error:
        return f"{ABSENT}{error}"
    except OSError as error:
        return f"before it was tried: {name_of(error.errno)}"


def _apart(line: Line, facts: Facts) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, _reply(line, facts).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        in_time = select.select([reading], [], [], _SECONDS)[0]
        if not in_time:
            os.kill(child, signal.SIGKILL)
        said = os.read(reading, 4096).decode(errors="replace") if in_time else f"no answer in {_SECONDS:.0f} s"
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) and not said else said

"""Runs cases, each in a process of its own, so that a killed one does not end the others."""

import os
import select
import signal
from collections.abc import Iterable, Iterator

from agentbox.sandbox.attacks.attempts import errno_name
from agentbox.sandbox.attacks.case import ABSENT, AttackCase, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.catalogue import CASES, CASES_BY_NAME

_SECONDS = 40.0


def run_cases(facts: TargetInfo, names: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields name and reply of each case. An isolated case runs in this process, as the last."""
    cases = [CASES_BY_NAME[name] for name in names] or [case for case in CASES if not case.isolated]
    for line in cases:
        yield line.name, _reply(line, facts) if line.isolated else _run_in_child(line, facts)


def _reply(case: AttackCase, facts: TargetInfo) -> str:
    try:
        return case.attempt(facts)
    except TargetMissing as error:
        return f"{ABSENT}{error}"
    except OSError as error:
        return f"before it was tried: {errno_name(error.errno)}"


def _run_in_child(case: AttackCase, facts: TargetInfo) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, _reply(case, facts).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        is_ready = select.select([reading], [], [], _SECONDS)[0]
        if not is_ready:
            os.kill(child, signal.SIGKILL)
        reply = (
            os.read(reading, 4096).decode(errors="replace")
            if is_ready
            else f"no answer in {_SECONDS:.0f} s"
        )
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return (
        signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) and not reply else reply
    )

"""Does something to a repository in a forked process, which is killed at one of the calls that
change files.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

CALLS = ("write", "fsync", "rename", "unlink", "mkdir", "replace")
DONE = 0


def run_killed(work: Callable[[], object], number: int, *, half: bool = False) -> bool:
    """Runs `work` in a child, which ends by SIGKILL at call `number` of those that change files,
    counted from 0; with `half`, a write puts half of its bytes into the file first. Returns whether
    it was killed: false if `work` ended before. Raises AssertionError if `work` fails.
    """
    pid = os.fork()
    if not pid:
        status = 1
        try:
            _count_calls(number, half)
            work()
            status = DONE
        finally:
            os._exit(status)
    _pid, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == DONE
    return False


def _count_calls(number: int, half: bool) -> None:
    done = 0

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            if done == number:
                if half and name == "write":
                    call(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            return call(*arguments, **options)

        return counting

    for name in CALLS:
        setattr(os, name, counted(name, getattr(os, name)))

"""`python -I -m support.program_starter FD MODULE`: a process that has imported what `python -I -m
MODULE` imports, and forks for each start that `support.forked_program` requests on socket FD.

Imports are two thirds of the CPU time of such a program until it is ready. It imports little
itself, because programs block modules that they never use. It ends with the socket, and each
program that it forked with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import MutableMapping
from typing import NoReturn, cast

from agentbox.core.linux import kernel
from agentbox.core.paths import environment

_MAX_REQUEST = 1 << 16  # bytes
_LAST_DESCRIPTOR = 1 << 20
_DESCRIPTORS = 2  # of a request: output of the program, where its exit code is written


def main(descriptor: int, module: str) -> None:
    """Serves starts until the socket is closed."""
    runpy.run_module(f"{module}.__main__", run_name="imports of a program")
    importlib.import_module(f"{module}.main")
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake)
    results: dict[int, int] = {}  # pid -> where its exit code is written
    while True:
        readable, _, _ = select.select([descriptor, ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
            _report(results)
        if descriptor in readable and not _serve(control, module, results):
            return


def _report(results: dict[int, int]) -> None:
    """Writes the exit codes of programs that have ended: negative for a signal."""
    while results:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        result = results.pop(pid)
        os.write(result, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(result)


def _serve(control: socket.socket, module: str, results: dict[int, int]) -> bool:
    """Forks a program and sends its pid; False if the socket is closed."""
    request, descriptors, _, _ = socket.recv_fds(control, _MAX_REQUEST, _DESCRIPTORS)
    if not request:
        return False
    output, result = descriptors
    starter = os.getpid()
    pid = os.fork()
    if not pid:
        _become(module, json.loads(request), output, starter)
    os.close(output)
    results[pid] = result
    control.send(str(pid).encode())
    return True


def _become(module: str, given: dict[str, str], output: int, starter: int) -> NoReturn:
    """Runs the program in this process, which is as one that was just started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    kernel.set_parent_death_signal(signal.SIGTERM)
    if os.getppid() != starter:
        os._exit(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((empty, output, output)):
        os.dup2(source, number)
    os.closerange(3, _LAST_DESCRIPTOR)
    variables = cast(MutableMapping[str, str], environment())
    variables.clear()
    variables.update(given)
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

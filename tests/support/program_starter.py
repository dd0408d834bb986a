"""`python -I -m support.program_starter FD MODULE`: a process that has imported what `python -I -m
MODULE` imports, and forks for each start that `support.forked_program` requests on socket FD.

Imports are two thirds of the CPU time of a program of the box until it is ready, and most of that
of a short command. It imports little itself, because programs block modules that they never use. It
ends with the socket, and each program that it forked with it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import MutableMapping
from typing import Any, NoReturn, cast

from agentbox.core.linux import kernel
from agentbox.core.paths import environment

_MAX_REQUEST = 1 << 16  # bytes
_LAST_DESCRIPTOR = 1 << 20
_DESCRIPTORS = 4  # of a request: stdin, stdout, stderr, where the exit code is written
_COMMAND = "agentbox"  # the command line, which imports what a command needs when it runs
_OF_COMMANDS = (
    "agentbox.host.cli",
    "agentbox.host.engines",
    "agentbox.manifest",
    "agentbox.plan",
    "agentbox.client",
)


def main(descriptor: int, module: str) -> None:
    """Serves starts until the socket is closed."""
    if module == _COMMAND:
        for package in _OF_COMMANDS:
            _import_all(package)
    else:
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
        if descriptor in readable and not _serve(control, results):
            return


def _import_all(package: str) -> None:
    """The package with all modules below it."""
    path = importlib.import_module(package).__path__
    for found in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(found.name)


def _report(results: dict[int, int]) -> None:
    """Writes the exit codes of programs that have ended: negative for a signal."""
    while results:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        result = results.pop(pid)
        os.write(result, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(result)


def _serve(control: socket.socket, results: dict[int, int]) -> bool:
    """Forks a program and sends its pid; False if the socket is closed."""
    request, descriptors, _, _ = socket.recv_fds(control, _MAX_REQUEST, _DESCRIPTORS)
    if not request:
        return False
    *standard, result = descriptors
    starter = os.getpid()
    pid = os.fork()
    if not pid:
        _become(json.loads(request), standard, starter)
    for number in standard:
        os.close(number)
    results[pid] = result
    control.send(str(pid).encode())
    return True


def _become(request: dict[str, Any], standard: list[int], starter: int) -> NoReturn:
    """Runs the program in this process, which is as one that was just started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    kernel.set_parent_death_signal(signal.SIGTERM)
    if os.getppid() != starter:
        os._exit(1)
    for number, source in enumerate(standard):
        os.dup2(source, number)
    os.closerange(3, _LAST_DESCRIPTOR)
    variables = cast(MutableMapping[str, str], environment())
    variables.clear()
    variables.update(request["env"])
    os.chdir(request["folder"])
    module = request["module"]
    sys.argv = [module, *request["words"]]
    _end(_run(module))


def _run(module: str) -> int:
    """Its exit code, when it has ended as a program does. What is only raised to end it by a
    signal, or is a bug, is raised."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        return ended.code or 0
    return 0


def _end(code: int) -> NoReturn:
    """Ends this process without freeing what the starter imported: that would copy all of it."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as CPython does first
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

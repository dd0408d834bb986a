"""Runs a Python script in a confined process."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from agentbox.core.linux import kernel
from agentbox.core.linux.landlock import PathRule
from agentbox.core.paths import CHECKOUT
from agentbox.sandbox import confinement as confine
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls import notification_server
from agentbox.sandbox.syscalls.listen import MAX_PORTS
from agentbox.sandbox.syscalls.notification_server import NotificationServer
from support.probe_script import PROBES

_PRELUDE = f"""{PROBES}
import signal, threading, time
from agentbox.core.linux import kernel
from agentbox.sandbox import confinement as confine
from agentbox.core.linux import landlock
from agentbox.sandbox.seccomp import installation
from agentbox.sandbox.syscalls import notification_server
from agentbox.sandbox.syscalls.notification_server import NotificationServer
from agentbox.sandbox.confinement import Confinement
from support.confined_process import run_confined
kernel.forbid_new_privileges()
"""
_AS_USER = """
os.setgid(%(user)d); os.setuid(%(user)d)
kernel.prctl(4, 1)  # PR_SET_DUMPABLE: makes the process's own /proc accessible again
"""

TCP = """
def connect(host, port, family=socket.AF_INET):
    with socket.socket(family) as client: client.connect((host, int(port)))
def served(host, family=socket.AF_INET, to=None):
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        with socket.create_connection((to or host, port)) as client, server.accept()[0] as peer:
            client.sendall(b"x"); assert peer.recv(1) == b"x"
        return server.getsockname()[0]
def bind(host, port=0, family=socket.AF_INET):
    with socket.socket(family) as server: server.bind((host, int(port)))
"""
"""For scripts that connect and serve."""

EVERYWHERE = PathRule("/", "rlwmxd")
"""Allows every path, for tests of other restrictions."""


def run_confined(
    confinement: Confinement,
    landlock_abi: int | None,
    pids: int,
    ports: int = MAX_PORTS,
    memory: int = 0,
) -> None:
    """Forks: the child returns, confined; the parent serves its system calls, like a reaper, and
    ends as the child ends.
    """
    local_end, remote_end = socket.socketpair()
    locks = os.memfd_create("ports")
    child = os.fork()
    if child == 0:
        kernel.set_parent_death_signal(signal.SIGKILL)
        _, listener = confine.apply(confinement, landlock_abi, forks=pids > 0)
        notification_server.send_notify_fd(remote_end, listener)
        for fd in (local_end.detach(), remote_end.detach(), listener):
            os.close(fd)
        return
    remote_end.close()
    if (notification_fd := notification_server.receive_notify_fd(local_end)) is not None:
        server = NotificationServer(notification_fd, confinement, locks, pids, memory, ports)
        poll = select.poll()
        poll.register(server, select.POLLIN)
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            poll.poll(20)
            server.serve()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def run_python(
    script: str,
    confinement: Confinement,
    landlock_abi: int | None = None,
    *arguments: str,
    user: int = 0,
    pids: int = 0,
    ports: int = MAX_PORTS,
    memory: int = 0,
) -> subprocess.CompletedProcess[str]:
    """`script` can use `call`, `tried` and `said`. `landlock_abi` lowers the ABI version. `user`:
    uid to switch to first, without capabilities, as in a box. `pids`: process limit. `ports`: port
    limit. `memory`: bytes, which also limit socket buffers.
    """
    data = json.dumps(asdict(confinement))
    prelude = (
        f"{_PRELUDE}{_AS_USER % {'user': user} if user else ''}\n"
        f"run_confined(Confinement.from_json(json.loads({data!r})), "
        f"{landlock_abi!r}, {pids!r}, {ports!r}, {memory!r})\n"
    )
    return subprocess.run(
        [sys.executable, "-c", prelude + script, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def run_json(
    script: str,
    confinement: Confinement,
    *arguments: str,
    landlock_abi: int | None = None,
    user: int = 0,
    pids: int = 0,
    ports: int = MAX_PORTS,
    memory: int = 0,
) -> dict[str, object]:
    """Return the JSON that the script printed."""
    result = run_python(
        script,
        confinement,
        landlock_abi,
        *arguments,
        user=user,
        pids=pids,
        ports=ports,
        memory=memory,
    )
    assert result.returncode == 0, result.stderr
    document: dict[str, object] = json.loads(result.stdout)
    return document


@contextmanager
def hello_server(host: str = "127.0.0.1", queue: int = 50) -> Iterator[int]:
    """Runs a server that accepts every connection and sends `hello`; yields its port."""
    with socket.create_server((host, 0), backlog=queue) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(b"hello")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)

"""A network namespace of a program that must reach nobody, as root and as another user."""

import os
import subprocess
import sys

import pytest

# Listens on loopback in a namespace of its own; a second process joins it and connects.
ALONE = """
import os, socket, sys
from pathlib import Path
from agentbox.core.network_namespace import enter_new, join
enter_new()
with socket.create_server(("127.0.0.1", 1)) as server:
    print(sorted(line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]), os.geteuid(), flush=True)
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=5)
    except OSError as error:
        print(error.strerror, flush=True)
    server.accept()[0].sendall(b"from inside")
"""
JOINED = """
import socket, sys
from agentbox.core.network_namespace import join
join(int(sys.argv[1]))
print(socket.create_connection(("127.0.0.1", 1), timeout=10).recv(20).decode())
"""
USERS = [None, 1000] if os.geteuid() == 0 else [None]


@pytest.mark.parametrize("user", USERS)
def test_it_has_loopback_only_and_others_can_join_it(user: int | None) -> None:
    """What is in it listens on any port, and reaches nobody outside; a user keeps the uid."""
    options = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    argv = [sys.executable, "-I", "-c"]
    # The capability to listen on port 1 is that of its user namespace.
    with subprocess.Popen(
        [*argv, ALONE], stdout=subprocess.PIPE, text=True, cwd="/", **options
    ) as alone:
        assert alone.stdout is not None
        uid = os.geteuid() if user is None else user
        assert alone.stdout.readline() == f"['lo'] {uid}\n"
        assert alone.stdout.readline() == "Network is unreachable\n"
        joined = subprocess.run(
            [*argv, JOINED, str(alone.pid)],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **options,
        )
        assert joined.stdout == "from inside\n", joined.stderr
        assert alone.wait(timeout=10) == 0

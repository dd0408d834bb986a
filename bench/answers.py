"""What one answer of the reaper costs: calls that it answers, and one that it does not, inside of a sandbox and outside.

`python bench/answers.py [--count N]`. Both sides run the same piece on one CPU, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace

from measure import Claim, write_results
from support.confined_process import EVERYWHERE, hello_server, run_python

from agentbox.sandbox.confinement import Confinement

_PIDS = 128
_PIECE = """
import json, os, socket, sys, threading, time
port, file, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def fork():
    if (pid := os.fork()) == 0: os._exit(0)
    os.waitpid(pid, 0)
def spawn(): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
def thread():
    one = threading.Thread(target=int); one.start(); one.join()
def connect():
    with socket.socket() as one: one.connect(("127.0.0.1", port))
def samples(what):
    found = []
    for _ in range(count):
        start = time.perf_counter(); what(); found.append((time.perf_counter() - start) * 1000)
    return found
kinds = {
    "stat": lambda: os.stat(file), "chmod": lambda: os.chmod(file, 0o600), "socket": lambda: socket.socket().close(),
    "socket and connect": connect, "thread": thread, "posix_spawn": spawn, "fork": fork,
}
print(json.dumps({name: samples(what) for name, what in kinds.items()}))
"""


def run(count: int) -> None:
    """Measures and keeps the claims."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.NamedTemporaryFile() as file, hello_server(queue=1000) as port:
        words = (str(port), file.name, str(count))
        plain = json.loads(
            subprocess.run(
                [sys.executable, "-c", _PIECE, *words], capture_output=True, check=True
            ).stdout
        )
        confinement = replace(Confinement(grants=(EVERYWHERE,)), door=port)
        inside = json.loads(run_python(_PIECE, confinement, None, *words, pids=_PIDS).stdout)
    claims = []
    for name, samples in plain.items():
        claims.append(Claim(f"{name}, plain", "ms", samples))
        claims.append(Claim(f"{name}, in a sandbox", "ms", inside[name], peer=f"{name}, plain"))
    write_results("answers", claims)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    run(parser.parse_args().count)

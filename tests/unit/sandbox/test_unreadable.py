"""A program whose file its user may execute and not read: /proc shows its open files to root only."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

WATCH = """
import os, signal, sys
from agentbox.sandbox.monitor.watchdog import TreeLimits, Watchdog
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
reading, writing = os.pipe()
waiting, _ = os.pipe()
root = os.fork()
if root == 0:
    os.dup2(writing, 1)
    os.dup2(waiting, 0)
    os.execv("/bin/sh", ["sh", "-c", '"$0" -c "echo up; exec 1>&-; read line"; true', sys.argv[1]])
os.close(writing)
assert os.read(reading, 3) == b"up\\n"
dog, limits = Watchdog(), {root: TreeLimits(number=1, memory=0, pids=0)}
print([(what.limit, what.observed) for _ in range(5) for _, kind, what in dog.poll(limits) if kind == "breach"], flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(0, signal.SIGTERM)
"""


@pytest.mark.limit("unreadable", case="unreadable")
@pytest.mark.parametrize("mode", [0o755, 0o111], ids=["readable", "unreadable"])
def test_a_program_that_nobody_can_look_into_ends_its_tree(mode: int) -> None:
    """Deleted files that it fills would count nowhere. A program like any other does not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copy = Path(shutil.copy("/bin/sh", folder))
        copy.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", WATCH, copy],
            capture_output=True,
            text=True,
            timeout=30,
            process_group=0,
            check=False,
        )
    found = [("unreadable", 1)] * 5 if mode == 0o111 else []
    assert (done.stdout, done.stderr) == (f"{found}\n", "")

"""What else confines a process on this machine: bubblewrap, and sandlock through an interpreter that has it.

`AGENTBOX_BENCH_SANDLOCK` or `--sandlock` names that interpreter: `python3 -m venv V && V/bin/pip install sandlock`, then
`V/bin/python`. What is not there is told and left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_SANDLOCK = """
import json, os, sys, time
import sandlock
given = json.load(sys.stdin)
box = sandlock.Sandbox(fs_readable=["/"], fs_writable=given["writable"], max_memory=given["memory"], max_processes=given["pids"], cwd=os.getcwd())
samples, text = [], ""
for number in range(given["warm_ups"] + given["count"]):
    began = time.perf_counter()
    done = box.run(given["argv"])
    samples.append((time.perf_counter() - began) * 1000)
    assert done.exit_code == 0, (done.exit_code, done.stderr)
    text = done.stdout if isinstance(done.stdout, str) else done.stdout.decode()
print(json.dumps({"samples": samples[given["warm_ups"]:], "text": text}))
"""


def bubblewrap(argv: Sequence[str], writable: Sequence[str] = ()) -> list[str] | None:
    """The command line that runs `argv` with namespaces of its own and a read-only view; None where there is no bwrap."""
    if (found := shutil.which("bwrap")) is None:
        return None
    binds = [word for folder in writable for word in ("--bind", folder, folder)]
    return [found, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *binds, "--unshare-all", "--die-with-parent", *argv]  # fmt: skip


def spawn_of(argv: Sequence[str]) -> float:
    """Milliseconds from the call to the exit of a program."""
    began = time.perf_counter()
    subprocess.run(
        argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False
    )
    return (time.perf_counter() - began) * 1000


def sandlock(
    python: Path | None,
    argv: Sequence[str],
    count: int,
    warm_ups: int = 3,
    writable: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[list[float], str] | None:
    """Milliseconds of `count` runs and the last one's output; None where that interpreter has no sandlock."""
    if python is None:
        return None
    given = {
        "argv": list(argv),
        "count": count,
        "warm_ups": warm_ups,
        "writable": list(writable),
        "memory": "1G",
        "pids": 128,
    }
    done = subprocess.run(
        [python, "-c", _SANDLOCK],
        input=json.dumps(given),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(
            f"sandlock is left out: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
        )
        return None
    found = json.loads(done.stdout.splitlines()[-1])
    return found["samples"], found["text"]

"""Runs a piece of Python in a process that was confined first."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from agentbox.sandbox.confine import Confinement
from agentbox.sandbox.landlock import Grant
from agentbox.settings import CHECKOUT

_BEFORE = """
import ctypes, errno, json, os, signal, socket, sys, threading, time
from agentbox.sandbox import confine, kernel, landlock, seccomp
from agentbox.sandbox.confine import Confinement
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *rest):
    found = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(one) for one in rest))
    return errno.errorcode[ctypes.get_errno()] if found < 0 else "passed"
def tried(what):
    try:
        what()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "passed"
def said(**what):
    print(json.dumps(what))
kernel.forbid_new_privileges()
"""
_AS_USER = """
os.setgid(%(user)d); os.setuid(%(user)d); kernel.prctl(4, 1)  # PR_SET_DUMPABLE: one's own /proc is one's own again
"""

EVERYWHERE = Grant("/", "rlwmxd")
"""No path is closed: for tests of something else."""


def python(
    script: str, confinement: Confinement, known: int | None = None, *arguments: str, user: int = 0
) -> subprocess.CompletedProcess[str]:
    """`script` finds `call`, `tried` and `said`. `known` lowers the Landlock ABI. `user`: become that one
    first, without a capability, as in a box."""
    data = json.dumps(asdict(confinement))
    before = f"{_BEFORE}{_AS_USER % {'user': user} if user else ''}\nconfine.apply(Confinement.from_json(json.loads({data!r})), {known!r})\n"
    return subprocess.run(
        [sys.executable, "-c", before + script, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=30
    )  # fmt: skip


def answer(
    script: str, confinement: Confinement, *arguments: str, known: int | None = None, user: int = 0
) -> dict[str, object]:
    """What the script said."""
    done = python(script, confinement, known, *arguments, user=user)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found

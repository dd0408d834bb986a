"""Floods of kernel memory that belongs to no process, and of memory in unreadable processes. They
belong to the suite `limits`.
"""

import ctypes
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from agentbox.sandbox.attacks.attempts import errno_name, syscall, syscall_result
from agentbox.sandbox.attacks.case import OFF, PASSED, AttackGroup, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.cases.limits import TESTS, UNIT

SUITE = AttackGroup("limits")
_USER_WATCHES: Final = Path("/proc/sys/fs/epoll/max_user_watches")
# Limits of an agent with little memory (agentbox/sandbox/syscalls/epoll.py, rulesets.py).
_SHARE_OF_USER, _SHARE_OF_MEMORY, _WATCH = 20, 16, 256
_RULE, _LAYERS = 96, 15
_RULES: Final = 200  # few: adding one takes as long as copying all
_FILES, _NUMBERS = 40, 30  # few enough for any limit on descriptors
_ONLY_RUN: Final = 0o111
# Built-in commands only: any other program would be readable.
_FILL_SCRIPT: Final = f"""
at=0
while [ $at -lt $1 ]; do printf %1048576s x >&2 || exit; at=$((at + 1)); done
echo {PASSED}
read -r end
"""
_BIND: Final = 1  # LANDLOCK_ACCESS_NET_BIND_TCP, linux/landlock.h
_PORT_RULE: Final = 2  # LANDLOCK_RULE_NET_PORT


@SUITE.case(
    "unreadable",
    "keeps a deleted file in an unreadable program (mode 0111)",
    {"ended: limit": "watchdog"},
    isolated=True,
    since=3,
    tests=(
        *TESTS,
        f"{UNIT}/test_unreadable.py::test_a_program_that_nobody_can_look_into_ends_its_tree",
    ),
)
def _unreadable(facts: TargetInfo) -> str:
    """Runs a copy of the shell, which writes the file itself."""
    shell = shutil.which("sh")
    if shell is None:
        raise TargetMissing("no shell")
    with tempfile.TemporaryDirectory() as temp_dir:
        program = shutil.copyfile(shell, f"{temp_dir}/sh")
        os.chmod(program, _ONLY_RUN)
        argv = [program, "-c", _FILL_SCRIPT, program, str(facts.above_limit("tmp") >> 20)]
        with tempfile.TemporaryFile(dir=temp_dir) as deleted_file:
            child = subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=deleted_file, text=True)
        with child:
            reply = child.stdout.readline().strip() if child.stdout else ""
            time.sleep(facts.patience)
            child.kill()
    return reply or "before it was tried: it ended"


@SUITE.case(
    "epoll",
    "adds epoll watches without limit",
    {"ENOSPC": "reaper"},
    isolated=True,
    since=3,
    lower={"memory": 32 << 20},
    tests=(*TESTS, f"{UNIT}/test_polling.py::test_watches_end_at_a_share_of_the_memory"),
)
def _epoll(facts: TargetInfo) -> str:
    """The kernel has one limit of watches per user, of which this takes at most a sixteenth. A
    watch belongs to a file and its number.
    """
    shares = (
        int(_USER_WATCHES.read_text()) // _SHARE_OF_USER,
        facts.limits["memory"] // _SHARE_OF_MEMORY // _WATCH,
    )
    remaining = min(shares) * 5 // 4
    files = [os.eventfd(0) for _ in range(_FILES)]
    numbers = [os.dup(0) for _ in range(_NUMBERS)]
    try:
        while remaining > 0:
            _retained.append(instance := select.epoll())
            for number in numbers:
                for file in files:
                    os.dup2(file, number)
                    instance.register(number, 0)
            remaining -= _FILES * _NUMBERS
    except OSError as error:
        return errno_name(error.errno)
    return PASSED


_retained: list[select.epoll] = []


@SUITE.case(
    "landlock-rules",
    "makes the kernel copy Landlock rules without limit",
    {"ENOMEM": "reaper"},
    isolated=True,
    since=3,
    lower={"memory": 32 << 20},
    tests=(*TESTS, f"{UNIT}/test_rulesets.py::test_copies_of_rules_have_a_most"),
)
def _landlock_rules(facts: TargetInfo) -> str:
    """Each layer copies all rules in force."""
    handled = (ctypes.c_uint64 * 2)(0, _BIND)
    ruleset = syscall_result(
        "landlock_create_ruleset", ctypes.addressof(handled), ctypes.sizeof(handled), 0
    )
    if ruleset < 0:
        raise TargetMissing(f"{OFF}this kernel has no Landlock rules about ports")
    for port in range(_RULES):
        rule = (ctypes.c_uint64 * 2)(_BIND, port)
        reply = syscall("landlock_add_rule", ruleset, _PORT_RULE, ctypes.addressof(rule), 0)
        if reply != PASSED:
            return reply
    copied = facts.limits["memory"] // _SHARE_OF_MEMORY // _RULE * 5 // 4
    layers = (
        syscall("landlock_restrict_self", ruleset, 0)
        for _ in range(copied // (_LAYERS * _RULES) + 1)
    )
    return next((reply for reply in layers if reply != PASSED), PASSED)

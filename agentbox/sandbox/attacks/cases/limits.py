"""Exhausts shared resources: processes, memory, disk, descriptors, output. Each case in an agent of
its own.
"""

import mmap
import os
import tempfile
import threading
import time
from typing import Final

from agentbox.sandbox.attacks.attempts import errno_name, run_attempt
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo

SUITE = AttackGroup("limits")
ENDED: Final = "ended: limit"  # the runner's reply for an agent that crossed a limit
MIB: Final = 1 << 20
BLOCK: Final = 8 * MIB
_THREADS_A_PROCESS: Final = 8  # threads of a tree per allowed process
UNIT: Final = "tests/unit/sandbox"
TESTS: Final = (
    "tests/unit/attack/test_battery.py::test_floods_end_alone",
    "tests/unit/attack/test_floods.py::test_a_limit_that_is_off_is_missed",
)


@SUITE.case("descriptors", "opens files without limit", {"EMFILE": "kernel"}, tests=TESTS)
def _descriptors(facts: TargetInfo) -> str:
    fds: list[int] = []
    try:
        tries = (
            run_attempt(lambda: fds.append(os.dup(0))) for _ in range(facts.above_limit("fds"))
        )
        return next((reply for reply in tries if reply != PASSED), PASSED)
    finally:
        for number in fds:
            os.close(number)


@SUITE.case(
    "processes",
    "forks without limit",
    {"EAGAIN": "reaper", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _processes(facts: TargetInfo) -> str:
    reading, writing = os.pipe()
    try:
        for _ in range(facts.above_limit("pids")):
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)  # until the first process exits
                os._exit(0)
    except OSError as error:
        return errno_name(error.errno)
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "threads",
    "starts threads without limit",
    {"EAGAIN": "reaper", "ENOMEM": "kernel", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _threads(facts: TargetInfo) -> str:
    finished = threading.Event()
    threading.stack_size(64 << 10)
    try:
        for _ in range(_THREADS_A_PROCESS * facts.above_limit("pids")):
            threading.Thread(target=finished.wait, daemon=True).start()
    except (RuntimeError, MemoryError):  # raised by the library for EAGAIN
        return "EAGAIN"
    finally:
        finished.set()
    return PASSED


@SUITE.case(
    "memory",
    "allocates memory without limit, in one process",
    {"ENOMEM": "kernel", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _memory(facts: TargetInfo) -> str:
    blocks = list[bytearray]()
    try:
        while len(blocks) * BLOCK < facts.above_limit("memory"):
            blocks.append(
                bytearray(b"x") * BLOCK
            )  # written, since untouched memory is not resident
    except MemoryError:
        return "ENOMEM"
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "shared-memory",
    "allocates shared memory without limit",
    {"ENOMEM": "kernel", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _shared_memory(facts: TargetInfo) -> str:
    mappings = list[mmap.mmap]()
    try:
        while len(mappings) * BLOCK < facts.above_limit("memory"):
            block = mmap.mmap(-1, BLOCK)
            for offset in range(0, BLOCK, mmap.PAGESIZE):
                block[offset] = 1
            mappings.append(block)
    except OSError as error:
        return errno_name(error.errno)
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "one-file",
    "writes one file without limit",
    {"EFBIG": "kernel", "ENOSPC": "kernel", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _single_file(facts: TargetInfo) -> str:
    with tempfile.TemporaryFile(buffering=0) as stream:
        return fill_files([stream.fileno()], facts.above_limit("branch_disk"), facts.patience)


@SUITE.case(
    "many-files",
    "writes many files without limit",
    {"ENOSPC": "kernel", "EDQUOT": "kernel", ENDED: "watchdog"},
    isolated=True,
    tests=TESTS,
)
def _many_files(facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        files = [
            os.open(f"{temp_dir}/{number}", os.O_WRONLY | os.O_CREAT, 0o600) for number in range(64)
        ]
        return fill_files(files, facts.above_limit("tmp"), facts.patience)


def fill_files(numbers: list[int], size: int, wait_seconds: float) -> str:
    """Allocates that many bytes in turn over the files, until it is stopped."""
    for step in range(size // MIB + 1):
        number = numbers[step % len(numbers)]
        reply = run_attempt(os.posix_fallocate, number, os.fstat(number).st_size, MIB)
        if reply != PASSED:
            return reply
    time.sleep(wait_seconds)
    return PASSED

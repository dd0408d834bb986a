"""Using up what belongs to all: processes, memory, disk, descriptors, output. Each in an agent of its own."""

import mmap
import os
import tempfile
import threading
import time
from typing import Final

from agentbox.attack.line import PASSED, Facts, Table
from agentbox.attack.tries import name_of, tried

TABLE = Table("limits")
_ENDED: Final = "ended: limit"  # what the runner says of an agent that crossed one
_MANY: Final = 5_000
_SECONDS: Final = 20.0
_MIB: Final = 1 << 20


@TABLE.line("descriptors", "opens files without end", {"EMFILE": "kernel"},
            tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _descriptors(_facts: Facts) -> str:
    held: list[int] = []
    try:
        return next(
            (reply for _ in range(100_000) if (reply := tried(lambda: held.append(os.dup(0)))) != PASSED), PASSED
        )
    finally:
        for number in held:
            os.close(number)


@TABLE.line("processes", "forks without end", {"EAGAIN": "reaper", _ENDED: "watchdog"}, alone=True,
            tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _processes(_facts: Facts) -> str:
    reading, writing = os.pipe()
    try:
        for _ in range(_MANY):
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)  # until the first is gone
                os._exit(0)
    except OSError as error:
        return name_of(error.errno)
    return PASSED


@TABLE.line("threads", "starts threads without end", {"EAGAIN": "reaper", "ENOMEM": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _threads(_facts: Facts) -> str:
    over = threading.Event()
    threading.stack_size(64 << 10)
    try:
        for _ in range(_MANY):
            threading.Thread(target=over.wait, daemon=True).start()
    except (RuntimeError, MemoryError):  # how the library tells EAGAIN
        return "EAGAIN"
    finally:
        over.set()
    return PASSED


@TABLE.line("memory", "takes memory without end, in one process", {"ENOMEM": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _memory(_facts: Facts) -> str:
    held = list[bytearray]()
    until = time.monotonic() + _SECONDS
    try:
        while time.monotonic() < until and len(held) < 256:
            held.append(bytearray(64 * _MIB))
    except MemoryError:
        return "ENOMEM"
    return PASSED


@TABLE.line("shared-memory", "takes memory without end that several processes share", {"ENOMEM": "kernel", _ENDED: "watchdog"},
            alone=True, tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _shared_memory(_facts: Facts) -> str:
    held = list[mmap.mmap]()
    until = time.monotonic() + _SECONDS
    try:
        while time.monotonic() < until and len(held) < 256:
            block = mmap.mmap(-1, 64 * _MIB)
            for at in range(0, 64 * _MIB, mmap.PAGESIZE):
                block[at] = 1
            held.append(block)
    except OSError as error:
        return name_of(error.errno)
    return PASSED


@TABLE.line("one-file", "writes one file without end", {"EFBIG": "kernel", "ENOSPC": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _one_file(_facts: Facts) -> str:
    with tempfile.TemporaryFile(buffering=0) as stream:
        return _filled([stream.fileno()])


@TABLE.line("many-files", "writes many files without end", {"ENOSPC": "kernel", "EDQUOT": "kernel", _ENDED: "watchdog"},
            alone=True, tests=("tests/unit/attack/test_battery.py::test_floods_end_alone",))  # fmt: skip
def _many_files(_facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        return _filled([os.open(f"{own}/{number}", os.O_WRONLY | os.O_CREAT, 0o600) for number in range(64)])


def _filled(numbers: list[int]) -> str:
    """Takes room 32 MiB at a time, a file after the other, until it is stopped: 3 GiB at most."""
    for step in range(96):
        number = numbers[step % len(numbers)]
        reply = tried(os.posix_fallocate, number, os.fstat(number).st_size, 32 * _MIB)
        if reply != PASSED:
            return reply
        time.sleep(0.05)
    time.sleep(3)  # a walk comes at most once a second
    return PASSED

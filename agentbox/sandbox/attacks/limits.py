"""Using up what belongs to all: processes, memory, disk, descriptors, output. Each in an agent of its own."""

import ctypes
import mmap
import os
import queue
import signal
import socket
import tempfile
import threading
import time
from contextlib import suppress
from typing import Final

from agentbox.sandbox.attacks.attempts import call, name_of, tried
from agentbox.sandbox.attacks.line import PASSED, Facts, Table

TABLE = Table("limits")
_ENDED: Final = "ended: limit"  # what the runner says of an agent that crossed one
_MIB: Final = 1 << 20
_BLOCK: Final = 8 * _MIB
_THREADS_A_PROCESS: Final = 8  # of the limit on processes, for the threads of a tree
_HELD: Final = b"x"
_OF_AN_INSTANCE: Final = 8 * _MIB  # that events may wait in
_EVENTS: Final = 16384  # that wait in an instance at most (fs.inotify.max_queued_events)
_MOVED: Final = 0xC0  # IN_MOVED_FROM | IN_MOVED_TO
_UNSHARE: Final = 2  # CLOSE_RANGE_UNSHARE
_NONE: Final = 1 << 30  # a descriptor that nobody has
_UNIT: Final = "tests/unit/sandbox"
_TESTS: Final = (
    "tests/unit/attack/test_battery.py::test_floods_end_alone",
    "tests/unit/attack/test_floods.py::test_a_limit_that_is_off_is_missed",
)


@TABLE.line("descriptors", "opens files without end", {"EMFILE": "kernel"}, tests=_TESTS)
def _descriptors(facts: Facts) -> str:
    held: list[int] = []
    try:
        tries = (tried(lambda: held.append(os.dup(0))) for _ in range(facts.just_over("fds")))
        return next((reply for reply in tries if reply != PASSED), PASSED)
    finally:
        for number in held:
            os.close(number)


@TABLE.line("processes", "forks without end", {"EAGAIN": "reaper", _ENDED: "watchdog"}, alone=True, tests=_TESTS)
def _processes(facts: Facts) -> str:
    reading, writing = os.pipe()
    try:
        for _ in range(facts.just_over("pids")):
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)  # until the first is gone
                os._exit(0)
    except OSError as error:
        return name_of(error.errno)
    time.sleep(facts.patience)
    return PASSED


@TABLE.line("threads", "starts threads without end", {"EAGAIN": "reaper", "ENOMEM": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=_TESTS)  # fmt: skip
def _threads(facts: Facts) -> str:
    over = threading.Event()
    threading.stack_size(64 << 10)
    try:
        for _ in range(_THREADS_A_PROCESS * facts.just_over("pids")):
            threading.Thread(target=over.wait, daemon=True).start()
    except (RuntimeError, MemoryError):  # how the library tells EAGAIN
        return "EAGAIN"
    finally:
        over.set()
    return PASSED


@TABLE.line("memory", "takes memory without end, in one process", {"ENOMEM": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=_TESTS)  # fmt: skip
def _memory(facts: Facts) -> str:
    held = list[bytearray]()
    try:
        while len(held) * _BLOCK < facts.just_over("memory"):
            held.append(bytearray(b"x") * _BLOCK)  # written: what is only asked for is not there yet
    except MemoryError:
        return "ENOMEM"
    time.sleep(facts.patience)
    return PASSED


@TABLE.line("shared-memory", "takes memory without end that several processes share", {"ENOMEM": "kernel", _ENDED: "watchdog"},
            alone=True, tests=_TESTS)  # fmt: skip
def _shared_memory(facts: Facts) -> str:
    held = list[mmap.mmap]()
    try:
        while len(held) * _BLOCK < facts.just_over("memory"):
            block = mmap.mmap(-1, _BLOCK)
            for at in range(0, _BLOCK, mmap.PAGESIZE):
                block[at] = 1
            held.append(block)
    except OSError as error:
        return name_of(error.errno)
    time.sleep(facts.patience)
    return PASSED


@TABLE.line("one-file", "writes one file without end", {"EFBIG": "kernel", "ENOSPC": "kernel", _ENDED: "watchdog"}, alone=True,
            tests=_TESTS)  # fmt: skip
def _one_file(facts: Facts) -> str:
    with tempfile.TemporaryFile(buffering=0) as stream:
        return _filled([stream.fileno()], facts.just_over("branch_disk"), facts.patience)


@TABLE.line("many-files", "writes many files without end", {"ENOSPC": "kernel", "EDQUOT": "kernel", _ENDED: "watchdog"},
            alone=True, tests=_TESTS)  # fmt: skip
def _many_files(facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        files = [os.open(f"{own}/{number}", os.O_WRONLY | os.O_CREAT, 0o600) for number in range(64)]
        return _filled(files, facts.just_over("tmp"), facts.patience)


@TABLE.line(
    "sockets", "fills pairs of sockets without end, in several processes",
    {"ENOBUFS": "reaper", _ENDED: "watchdog"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_buffers.py::test_pairs_end_below_the_memory"),
)  # fmt: skip
def _sockets(facts: Facts) -> str:
    left = facts.just_over("memory")
    while left > 0:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, " ".join(map(str, _pairs(left))).encode())
            signal.pause()
        reply, filled = os.read(reading, 256).decode().split()
        os.close(reading)
        os.close(writing)
        if reply not in (PASSED, "EMFILE"):  # of the descriptors of one process there are few; there is another process
            return reply
        left -= int(filled)
    time.sleep(facts.patience)
    return PASSED


@TABLE.line(
    "under-way", "keeps deleted files in no process but under way in a socket",
    {_ENDED: "watchdog"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_walker.py::test_deleted_files_that_are_under_way_in_sockets_count"),
)  # fmt: skip
def _under_way(facts: Facts) -> str:
    """Twice as much as it may: what others remove meanwhile is taken off."""
    near, far = socket.socketpair()
    _kept.append(far)
    for _ in range(2 * facts.just_over("tmp") // _BLOCK):
        with tempfile.TemporaryFile() as stream:
            reply = tried(os.posix_fallocate, stream.fileno(), 0, _BLOCK)
            if reply != PASSED:
                return reply
            socket.send_fds(near, [b"x"], [stream.fileno()])
    time.sleep(2 * facts.patience)
    return PASSED


@TABLE.line(
    "leaderless", "takes memory without end in processes whose first thread has ended",
    {_ENDED: "watchdog"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_tree.py::test_a_process_without_its_first_thread_is_no_zombie"),
)  # fmt: skip
def _leaderless(facts: Facts) -> str:
    """In three processes, each far below the limit."""
    reading, writing = os.pipe()
    for _ in range(3):
        if os.fork() == 0:
            threading.Thread(target=_hold, args=(facts.just_over("memory") // 3, writing)).start()
            ctypes.CDLL(None).pthread_exit(None)
    os.close(writing)
    for _ in range(3):
        if os.read(reading, 1) != _HELD:
            return "before it was tried: a process ended"
    time.sleep(facts.patience)
    return PASSED


@TABLE.line(
    "dropped-shared", "drops shared memory from its tables, so that no process has it, without end",
    {"ENOMEM": "reaper"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_anonymous.py::test_pages_that_left_the_tables_count"),
)  # fmt: skip
def _dropped_shared(facts: Facts) -> str:
    """Asks for half as much again as the other floods, since that is the most, and writes as much as they do."""
    held = list[mmap.mmap]()
    try:
        while len(held) * _BLOCK < facts.just_over("memory") * 3 // 2:
            held.append(mmap.mmap(-1, _BLOCK))
            for at in range(0, _BLOCK * 2 // 3, mmap.PAGESIZE):
                held[-1][at] = 1
            held[-1].madvise(mmap.MADV_DONTNEED)
    except OSError as error:
        return name_of(error.errno)
    time.sleep(facts.patience)
    return PASSED


@TABLE.line(
    "inotify", "has events wait unread in inotify instances without end",
    {"EMFILE": "reaper"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_watching.py::test_instances_end_below_a_quarter_of_the_memory"),
)  # fmt: skip
def _inotify(facts: Facts) -> str:
    """Each that is made holds what it can: a quarter past what all of them may hold, a quarter of the memory."""
    library, reply = ctypes.CDLL(None, use_errno=True), PASSED
    with tempfile.TemporaryDirectory() as own:
        for _ in range(facts.just_over("memory") // 4 // _OF_AN_INSTANCE + 1):
            made = library.inotify_init1(0)
            if made < 0:
                reply = name_of(ctypes.get_errno())
                break
            library.inotify_add_watch(made, own.encode(), _MOVED)
        names = [f"{own}/{letter * 200}" for letter in "ab"]
        os.close(os.open(names[0], os.O_CREAT, 0o600))
        for step in range(_EVENTS // 2):  # two events each
            os.rename(names[step % 2], names[1 - step % 2])
    return reply


@TABLE.line(
    "thread-files", "keeps deleted files in a thread that has descriptors of its own",
    {"EINVAL": "seccomp"}, alone=True, since=2,
    tests=(*_TESTS, f"{_UNIT}/test_forks.py::test_threads_of_a_process_share_their_descriptors"),
)  # fmt: skip
def _thread_files(facts: Facts) -> str:
    said = queue.SimpleQueue[str]()
    threading.Thread(target=lambda: said.put(_in_a_thread(facts)), daemon=True).start()
    return said.get()


def _in_a_thread(facts: Facts) -> str:
    """A thread that is not the first."""
    reply = call("close_range", _NONE, _NONE, _UNSHARE)
    if reply != PASSED:
        return reply
    held = list[int]()
    for _ in range(16):
        number, path = tempfile.mkstemp()
        os.unlink(path)
        held.append(number)
    return _filled(held, facts.just_over("tmp"), facts.patience)


def _hold(size: int, told: int) -> None:
    """Takes that much, says so, and stays."""
    _kept.extend(bytearray(b"x") * _BLOCK for _ in range(size // _BLOCK + 1))
    os.write(told, _HELD)
    signal.pause()


def _pairs(size: int) -> tuple[str, int]:
    """Fills so many bytes of them or as far as it comes: why it ended, and bytes."""
    held, filled = list[tuple[socket.socket, socket.socket]](), 0
    try:
        while filled < size:
            held.append(socket.socketpair())
            for one in held[-1]:
                one.setblocking(False)
                with suppress(BlockingIOError):
                    while True:
                        filled += one.send(bytes(1 << 16))
    except OSError as error:
        _kept.append(held)
        return name_of(error.errno), filled
    _kept.append(held)
    return PASSED, filled


_kept: list[object] = []


def _filled(numbers: list[int], size: int, patience: float) -> str:
    """Takes so many bytes, a file after the other, until it is stopped."""
    for step in range(size // _MIB + 1):
        number = numbers[step % len(numbers)]
        reply = tried(os.posix_fallocate, number, os.fstat(number).st_size, _MIB)
        if reply != PASSED:
            return reply
    time.sleep(patience)
    return PASSED

"""Exhausts shared resources: processes, memory, disk, descriptors, output. Each case in an agent of
its own.
"""

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

from agentbox.sandbox.attacks.attempts import errno_name, run_attempt, syscall
from agentbox.sandbox.attacks.case import PASSED, AttackSuite, TargetInfo

SUITE = AttackSuite("limits")
_ENDED: Final = "ended: limit"  # the runner's reply for an agent that crossed a limit
_MIB: Final = 1 << 20
_BLOCK: Final = 8 * _MIB
_THREADS_A_PROCESS: Final = 8  # threads of a tree per allowed process
_READY: Final = b"x"
_INSTANCE_BYTES: Final = 8 * _MIB  # of waiting events
_EVENTS: Final = 16384  # maximum of waiting events (fs.inotify.max_queued_events)
_MOVE_EVENTS: Final = 0xC0  # IN_MOVED_FROM | IN_MOVED_TO
_UNSHARE: Final = 2  # CLOSE_RANGE_UNSHARE
_NO_DESCRIPTOR: Final = 1 << 30  # an unused descriptor
_UNIT: Final = "tests/unit/sandbox"
_TESTS: Final = (
    "tests/unit/attack/test_battery.py::test_floods_end_alone",
    "tests/unit/attack/test_floods.py::test_a_limit_that_is_off_is_missed",
)


@SUITE.case("descriptors", "opens files without limit", {"EMFILE": "kernel"}, tests=_TESTS)
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
    {"EAGAIN": "reaper", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
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
    {"EAGAIN": "reaper", "ENOMEM": "kernel", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
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
    {"ENOMEM": "kernel", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
)
def _memory(facts: TargetInfo) -> str:
    blocks = list[bytearray]()
    try:
        while len(blocks) * _BLOCK < facts.above_limit("memory"):
            blocks.append(
                bytearray(b"x") * _BLOCK
            )  # written, since untouched memory is not resident
    except MemoryError:
        return "ENOMEM"
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "shared-memory",
    "allocates shared memory without limit",
    {"ENOMEM": "kernel", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
)
def _shared_memory(facts: TargetInfo) -> str:
    mappings = list[mmap.mmap]()
    try:
        while len(mappings) * _BLOCK < facts.above_limit("memory"):
            block = mmap.mmap(-1, _BLOCK)
            for offset in range(0, _BLOCK, mmap.PAGESIZE):
                block[offset] = 1
            mappings.append(block)
    except OSError as error:
        return errno_name(error.errno)
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "one-file",
    "writes one file without limit",
    {"EFBIG": "kernel", "ENOSPC": "kernel", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
)
def _single_file(facts: TargetInfo) -> str:
    with tempfile.TemporaryFile(buffering=0) as stream:
        return _fill_files([stream.fileno()], facts.above_limit("branch_disk"), facts.patience)


@SUITE.case(
    "many-files",
    "writes many files without limit",
    {"ENOSPC": "kernel", "EDQUOT": "kernel", _ENDED: "watchdog"},
    isolated=True,
    tests=_TESTS,
)
def _many_files(facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        files = [
            os.open(f"{temp_dir}/{number}", os.O_WRONLY | os.O_CREAT, 0o600) for number in range(64)
        ]
        return _fill_files(files, facts.above_limit("tmp"), facts.patience)


@SUITE.case(
    "sockets",
    "fills socket pairs without limit, in several processes",
    {"ENOBUFS": "reaper", _ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(*_TESTS, f"{_UNIT}/test_buffers.py::test_pairs_end_below_the_memory"),
)
def _sockets(facts: TargetInfo) -> str:
    remaining = facts.above_limit("memory")
    while remaining > 0:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, " ".join(map(str, _fill_socket_pairs(remaining))).encode())
            signal.pause()
        reply, filled = os.read(reading, 256).decode().split()
        os.close(reading)
        os.close(writing)
        if reply not in (
            PASSED,
            "EMFILE",
        ):  # a limit per process; the next process continues
            return reply
        remaining -= int(filled)
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "under-way",
    "keeps deleted files in flight in a socket only",
    {_ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(
        *_TESTS,
        f"{_UNIT}/test_walker.py::test_deleted_files_that_are_under_way_in_sockets_count",
    ),
)
def _under_way(facts: TargetInfo) -> str:
    """Twice the limit: files that others delete meanwhile are subtracted."""
    local, remote = socket.socketpair()
    _retained.append(remote)
    for _ in range(2 * facts.above_limit("tmp") // _BLOCK):
        with tempfile.TemporaryFile() as stream:
            reply = run_attempt(os.posix_fallocate, stream.fileno(), 0, _BLOCK)
            if reply != PASSED:
                return reply
            socket.send_fds(local, [b"x"], [stream.fileno()])
    time.sleep(2 * facts.patience)
    return PASSED


@SUITE.case(
    "leaderless",
    "allocates memory without limit in processes whose first thread has exited",
    {_ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(*_TESTS, f"{_UNIT}/test_tree.py::test_a_process_without_its_first_thread_is_no_zombie"),
)
def _leaderless(facts: TargetInfo) -> str:
    """In three processes, each far below the limit."""
    reading, writing = os.pipe()
    for _ in range(3):
        if os.fork() == 0:
            threading.Thread(
                target=_hold_memory, args=(facts.above_limit("memory") // 3, writing)
            ).start()
            ctypes.CDLL(None).pthread_exit(None)
    os.close(writing)
    for _ in range(3):
        if os.read(reading, 1) != _READY:
            return "before it was tried: a process ended"
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "dropped-shared",
    "drops shared memory from its page tables, without limit",
    {"ENOMEM": "reaper"},
    isolated=True,
    since=2,
    tests=(*_TESTS, f"{_UNIT}/test_anonymous.py::test_pages_that_left_the_tables_count"),
)
def _dropped_shared(facts: TargetInfo) -> str:
    """Requests one and a half times as much as the other floods, which is the limit, and writes as
    much as they do.
    """
    mappings = list[mmap.mmap]()
    try:
        while len(mappings) * _BLOCK < facts.above_limit("memory") * 3 // 2:
            mappings.append(mmap.mmap(-1, _BLOCK))
            for offset in range(0, _BLOCK * 2 // 3, mmap.PAGESIZE):
                mappings[-1][offset] = 1
            mappings[-1].madvise(mmap.MADV_DONTNEED)
    except OSError as error:
        return errno_name(error.errno)
    time.sleep(facts.patience)
    return PASSED


@SUITE.case(
    "inotify",
    "leaves events unread in inotify instances without limit",
    {"EMFILE": "reaper"},
    isolated=True,
    since=2,
    tests=(*_TESTS, f"{_UNIT}/test_watching.py::test_instances_end_below_a_quarter_of_the_memory"),
)
def _inotify(facts: TargetInfo) -> str:
    """Fills each created instance: a quarter more than the limit of all, which is a quarter of the
    memory.
    """
    library, reply = ctypes.CDLL(None, use_errno=True), PASSED
    with tempfile.TemporaryDirectory() as temp_dir:
        for _ in range(facts.above_limit("memory") // 4 // _INSTANCE_BYTES + 1):
            instance = library.inotify_init1(0)
            if instance < 0:
                reply = errno_name(ctypes.get_errno())
                break
            library.inotify_add_watch(instance, temp_dir.encode(), _MOVE_EVENTS)
        names = [f"{temp_dir}/{letter * 200}" for letter in "ab"]
        os.close(os.open(names[0], os.O_CREAT, 0o600))
        for step in range(_EVENTS // 2):  # two events each
            os.rename(names[step % 2], names[1 - step % 2])
    return reply


@SUITE.case(
    "thread-files",
    "keeps deleted files in a thread with its own descriptor table",
    {"EINVAL": "seccomp"},
    isolated=True,
    since=2,
    tests=(*_TESTS, f"{_UNIT}/test_forks.py::test_threads_of_a_process_share_their_descriptors"),
)
def _thread_files(facts: TargetInfo) -> str:
    replies = queue.SimpleQueue[str]()
    threading.Thread(target=lambda: replies.put(_fill_unshared_files(facts)), daemon=True).start()
    return replies.get()


def _fill_unshared_files(facts: TargetInfo) -> str:
    """Runs in a thread that is not the first."""
    reply = syscall("close_range", _NO_DESCRIPTOR, _NO_DESCRIPTOR, _UNSHARE)
    if reply != PASSED:
        return reply
    fds = list[int]()
    for _ in range(16):
        number, path = tempfile.mkstemp()
        os.unlink(path)
        fds.append(number)
    return _fill_files(fds, facts.above_limit("tmp"), facts.patience)


def _hold_memory(size: int, ready_fd: int) -> None:
    """Allocates that much, signals it, and waits."""
    _retained.extend(bytearray(b"x") * _BLOCK for _ in range(size // _BLOCK + 1))
    os.write(ready_fd, _READY)
    signal.pause()


def _fill_socket_pairs(size: int) -> tuple[str, int]:
    """Fills pairs with up to that many bytes: the reply and the number of bytes."""
    pairs, filled = list[tuple[socket.socket, socket.socket]](), 0
    try:
        while filled < size:
            pairs.append(socket.socketpair())
            for sock in pairs[-1]:
                sock.setblocking(False)
                with suppress(BlockingIOError):
                    while True:
                        filled += sock.send(bytes(1 << 16))
    except OSError as error:
        _retained.append(pairs)
        return errno_name(error.errno), filled
    _retained.append(pairs)
    return PASSED, filled


_retained: list[object] = []


def _fill_files(numbers: list[int], size: int, wait_seconds: float) -> str:
    """Allocates that many bytes in turn over the files, until it is stopped."""
    for step in range(size // _MIB + 1):
        number = numbers[step % len(numbers)]
        reply = run_attempt(os.posix_fallocate, number, os.fstat(number).st_size, _MIB)
        if reply != PASSED:
            return reply
    time.sleep(wait_seconds)
    return PASSED

"""Uses memory and files that the counts of processes, descriptors and sizes do not show. Each case
in an agent of its own; they belong to the suite `limits`.
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
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo
from agentbox.sandbox.attacks.cases.limits import (
    BLOCK,
    ENDED,
    MIB,
    TESTS,
    UNIT,
    fill_files,
)

SUITE = AttackGroup("limits")
_READY: Final = b"x"
_INSTANCE_BYTES: Final = 8 * MIB  # of waiting events
_EVENTS: Final = 16384  # maximum of waiting events (fs.inotify.max_queued_events)
_MOVE_EVENTS: Final = 0xC0  # IN_MOVED_FROM | IN_MOVED_TO
_UNSHARE: Final = 2  # CLOSE_RANGE_UNSHARE
_NO_DESCRIPTOR: Final = 1 << 30  # an unused descriptor


@SUITE.case(
    "sockets",
    "fills socket pairs without limit, in several processes",
    {"ENOBUFS": "reaper", ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(*TESTS, f"{UNIT}/test_buffers.py::test_pairs_end_below_the_memory"),
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
    {ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(
        *TESTS,
        f"{UNIT}/test_walker.py::test_deleted_files_that_are_under_way_in_sockets_count",
    ),
)
def _under_way(facts: TargetInfo) -> str:
    """Twice the limit: files that others delete meanwhile are subtracted."""
    local, remote = socket.socketpair()
    _retained.append(remote)
    for _ in range(2 * facts.above_limit("tmp") // BLOCK):
        with tempfile.TemporaryFile() as stream:
            reply = run_attempt(os.posix_fallocate, stream.fileno(), 0, BLOCK)
            if reply != PASSED:
                return reply
            socket.send_fds(local, [b"x"], [stream.fileno()])
    time.sleep(2 * facts.patience)
    return PASSED


@SUITE.case(
    "leaderless",
    "allocates memory without limit in processes whose first thread has exited",
    {ENDED: "watchdog"},
    isolated=True,
    since=2,
    tests=(*TESTS, f"{UNIT}/test_tree.py::test_a_process_without_its_first_thread_is_no_zombie"),
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
    tests=(*TESTS, f"{UNIT}/test_anonymous.py::test_pages_that_left_the_tables_count"),
)
def _dropped_shared(facts: TargetInfo) -> str:
    """Requests one and a half times as much as the other floods, which is the limit, and writes as
    much as they do.
    """
    mappings = list[mmap.mmap]()
    try:
        while len(mappings) * BLOCK < facts.above_limit("memory") * 3 // 2:
            mappings.append(mmap.mmap(-1, BLOCK))
            for offset in range(0, BLOCK * 2 // 3, mmap.PAGESIZE):
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
    tests=(*TESTS, f"{UNIT}/test_watching.py::test_instances_end_below_a_quarter_of_the_memory"),
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
    tests=(*TESTS, f"{UNIT}/test_forks.py::test_threads_of_a_process_share_their_descriptors"),
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
    return fill_files(fds, facts.above_limit("tmp"), facts.patience)


def _hold_memory(size: int, ready_fd: int) -> None:
    """Allocates that much, signals it, and waits."""
    _retained.extend(bytearray(b"x") * BLOCK for _ in range(size // BLOCK + 1))
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

"""Reaches a protected file by every kind of name: dots, links, renames, descriptors, watches. The
cases belong to the suite `files`.
"""

import ctypes
import mmap
import os
import tempfile
import threading
import time
from contextlib import suppress
from typing import Final

from agentbox.sandbox.attacks.attempts import (
    create_file,
    open_and_close,
    run_attempt,
    run_each,
    worst,
)
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.cases.files import BLOCKED

SUITE = AttackGroup("files")
_PATH_TESTS: Final = ("tests/unit/sandbox/test_confine.py::test_paths",)
_BLOCKED_OR_READ_ONLY: Final = {"EACCES": "landlock", "EROFS": "container"}
_LINK_BLOCKED: Final = {"EACCES": "landlock", "EXDEV": "landlock"}
_RACE_SECONDS: Final = 0.5
_CREATED: Final = 0x100  # IN_CREATE, linux/inotify.h


@SUITE.case(
    "write-by-path",
    "creates a file outside of its directories",
    _BLOCKED_OR_READ_ONLY,
    tests=_PATH_TESTS,
)
def _write_by_path(facts: TargetInfo) -> str:
    return run_each(
        lambda directory: create_file(f"{directory}/planted"),
        (_target(facts), "/etc", "/usr", "/opt", "/"),
    )


@SUITE.case("write-by-dots", "the same through `..`", BLOCKED, tests=_PATH_TESTS)
def _write_by_dots(facts: TargetInfo) -> str:
    temp_dir = tempfile.gettempdir()
    return run_attempt(
        lambda: create_file(temp_dir + "/.." * temp_dir.count("/") + _target(facts) + "/planted")
    )


@SUITE.case(
    "write-by-link",
    "the same through a symbolic link, as the file and as its directory",
    BLOCKED,
    tests=_PATH_TESTS,
)
def _write_by_link(facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        os.symlink(_target(facts), f"{temp_dir}/folder")
        os.symlink(f"{_target(facts)}/planted", f"{temp_dir}/file")
        return worst(
            [
                run_attempt(lambda: create_file(f"{temp_dir}/folder/planted")),
                run_attempt(lambda: open_and_close(f"{temp_dir}/file", os.O_WRONLY | os.O_CREAT)),
            ]
        )


@SUITE.case("hard-link", "links a secret into its own directory", _LINK_BLOCKED, tests=_PATH_TESTS)
def _hard_link(facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        return run_each(lambda path: os.link(path, f"{temp_dir}/taken"), facts.secrets)


@SUITE.case(
    "rename",
    "moves a file out of its directories",
    _LINK_BLOCKED,
    tests=_PATH_TESTS,
)
def _rename(facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        open_and_close(f"{temp_dir}/mine", os.O_WRONLY | os.O_CREAT)
        reply = run_attempt(lambda: os.rename(f"{temp_dir}/mine", f"{_target(facts)}/planted"))
        if reply == PASSED:
            os.unlink(f"{_target(facts)}/planted")
        return reply


@SUITE.case(
    "own-descriptors",
    "reopens an O_PATH descriptor through /proc/self/fd, and a path through /proc/self/root",
    BLOCKED,
    tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",),
)
def _self_descriptors(facts: TargetInfo) -> str:
    def reopen(path: str) -> None:
        name = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            open_and_close(f"/proc/self/fd/{name}")
        finally:
            os.close(name)

    return worst(
        [
            run_each(reopen, facts.secrets),
            run_each(lambda path: open_and_close(f"/proc/self/root{path}"), facts.secrets),
        ]
    )


@SUITE.case(
    "below-a-descriptor",
    "opens files below an O_PATH descriptor of a directory",
    BLOCKED,
    tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",),
)
def _below_a_descriptor(facts: TargetInfo) -> str:
    directory_fd = os.open(_target(facts), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return worst(
            [
                run_attempt(
                    lambda: os.close(
                        os.open("planted", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory_fd)
                    )
                ),
                run_attempt(lambda: os.mkdir("planted.d", dir_fd=directory_fd)),
                run_attempt(lambda: os.listdir(f"/proc/self/fd/{directory_fd}")),
            ]
        )
    finally:
        os.close(directory_fd)


@SUITE.case(
    "rename-race",
    "swaps a directory for a link while another thread opens a file below it",
    BLOCKED,
    tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",),
)
def _rename_race(facts: TargetInfo) -> str:
    """Counts every open of the box's file: one that passes is enough."""
    secret = next((path for path in facts.secrets if os.path.lexists(path)), "")
    if not secret:
        raise TargetMissing("no secret as a target")
    directory, name = os.path.split(secret)
    with tempfile.TemporaryDirectory() as temp_dir:
        os.mkdir(f"{temp_dir}/true")
        open_and_close(f"{temp_dir}/true/{name}", os.O_WRONLY | os.O_CREAT)
        os.symlink(directory, f"{temp_dir}/link")
        return _race(temp_dir, f"{temp_dir}/now/{name}", secret)


def _race(temp_dir: str, path: str, secret: str) -> str:
    finished = threading.Event()

    def swap() -> None:
        while not finished.is_set():
            for name in ("true", "link"):
                with suppress(OSError):
                    os.symlink(f"{temp_dir}/{name}", f"{temp_dir}/next")
                    os.rename(f"{temp_dir}/next", f"{temp_dir}/now")

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    secret_inode, refused, deadline = os.stat(secret).st_ino, 0, time.monotonic() + _RACE_SECONDS
    try:
        while time.monotonic() < deadline:
            reply = run_attempt(lambda: _open_other_inode(path, secret_inode))
            if reply == PASSED:
                return PASSED
            refused += reply == "EACCES"
    finally:
        finished.set()
        thread.join()
    return "EACCES" if refused else "EAGAIN"


def _open_other_inode(path: str, inode: int) -> None:
    """Raises OSError, also FileNotFoundError for a file of the attacker."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_ino != inode:
            raise FileNotFoundError(2, "its own")
    finally:
        os.close(fd)


@SUITE.case(
    "device", "creates a device node", {"EACCES": "landlock", "EPERM": "kernel"}, tests=_PATH_TESTS
)
def _device(_facts: TargetInfo) -> str:
    with tempfile.TemporaryDirectory() as temp_dir:
        return run_attempt(lambda: os.mknod(f"{temp_dir}/device", 0o20600, os.makedev(1, 3)))


@SUITE.case(
    "own-oom-score",
    "lowers its own OOM score",
    BLOCKED,
    tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",),
)
def _self_oom_score(_facts: TargetInfo) -> str:
    return run_attempt(lambda: open_and_close("/proc/self/oom_score_adj", os.O_WRONLY))


@SUITE.case(
    "zeros",
    "maps /dev/zero as shared memory, which counts for no process",
    BLOCKED,
    since=3,
    tests=(
        "tests/unit/sandbox/test_anonymous.py::test_the_device_of_zeros_gives_no_shared_memory",
    ),
)
def _zeros(_facts: TargetInfo) -> str:
    def map_shared() -> None:
        with open("/dev/zero", "r+b", buffering=0) as device:
            mmap.mmap(device.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED).close()

    return run_attempt(map_shared)


@SUITE.case(
    "watch",
    "watches directories of the box and of another agent for new names (inotify)",
    {"EACCES": "reaper"},
    since=3,
    tests=("tests/unit/sandbox/test_watching.py::test_what_may_not_be_read_is_not_watched",),
)
def _watch(facts: TargetInfo) -> str:
    library = ctypes.CDLL(None, use_errno=True)
    instance = library.inotify_init1(os.O_CLOEXEC)
    if instance < 0:
        raise OSError(ctypes.get_errno(), "no instance")

    def watch(path: str) -> None:
        if library.inotify_add_watch(instance, path.encode(), _CREATED) < 0:
            raise OSError(ctypes.get_errno(), path)

    try:
        return run_each(watch, (*facts.folders, facts.neighbour.home))
    finally:
        os.close(instance)


def _target(facts: TargetInfo) -> str:
    if not facts.writable:
        raise TargetMissing("no directory of the control plane is known")
    return facts.writable

"""Reading what is not the agent's, and writing outside of its places, by every kind of name."""

import ctypes
import mmap
import os
import tempfile
import threading
import time
from contextlib import suppress
from typing import Final

from agentbox.sandbox.attacks.attempts import each, made, opened, tried, worst
from agentbox.sandbox.attacks.line import PASSED, Absent, Facts, Table

TABLE = Table("files")
_STRANGERS: Final = ("tests/unit/sandbox/test_confine.py::test_strangers_cannot_be_reached",)
_CONTROL: Final = (
    "tests/unit/agents/test_confinement.py::test_the_control_plane_is_closed",
    "tests/unit/attack/test_battery.py::test_nothing_gets_through",
)
_PATHS: Final = ("tests/unit/sandbox/test_confine.py::test_paths",)
_HELD: Final = {"EACCES": "landlock"}
_HELD_OR_SEALED: Final = {"EACCES": "landlock", "EROFS": "container"}
_LINKS: Final = {"EACCES": "landlock", "EXDEV": "landlock"}
_RACE_SECONDS: Final = 0.5
_CREATED: Final = 0x100  # IN_CREATE, linux/inotify.h


@TABLE.line("init-environment", "reads the environment of process 1", _HELD, tests=_STRANGERS)
def _init_environment(_facts: Facts) -> str:
    return tried(opened, "/proc/1/environ")


@TABLE.line("parent-environment", "reads environment and memory of its reaper", _HELD, tests=_STRANGERS)
def _parent_environment(_facts: Facts) -> str:
    stranger = _reaper()
    return worst(tried(opened, f"/proc/{stranger}/{name}") for name in ("environ", "mem", "maps"))


@TABLE.line("sibling-environment", "reads the environment of another agent", _HELD, tests=_STRANGERS)
def _sibling_environment(facts: Facts) -> str:
    return tried(lambda: opened(f"/proc/{_sibling(facts)}/environ"))


@TABLE.line("sibling-memory", "opens the memory of another agent", _HELD, tests=_STRANGERS)
def _sibling_memory(facts: Facts) -> str:
    pid = _sibling(facts)
    return worst([tried(lambda: opened(f"/proc/{pid}/mem")), tried(lambda: opened(f"/proc/{pid}/mem", os.O_RDWR))])


@TABLE.line(
    "sibling-descriptors", "opens another agent's descriptors, root and folder through /proc", _HELD, tests=_STRANGERS
)
def _sibling_descriptors(facts: Facts) -> str:
    folder = f"/proc/{_sibling(facts)}"
    opens = (tried(opened, f"{folder}/{name}") for name in ("fd/1", "root/etc/passwd", "cwd/.", "maps"))
    return worst([*opens, tried(os.listdir, f"{folder}/map_files")])


@TABLE.line("sibling-files", "reads, lists and writes another agent's folders", _HELD, tests=_CONTROL)
def _sibling_files(facts: Facts) -> str:
    home = facts.neighbour.home
    if not home:
        raise Absent("no neighbour")
    return worst([
        tried(opened, f"{home}/secret"), tried(os.listdir, home), tried(made, f"{home}/planted"),
    ])  # fmt: skip


@TABLE.line("secrets", "reads the box's tokens, keys and secrets", _HELD, tests=_CONTROL)
def _secrets(facts: Facts) -> str:
    return each(opened, facts.secrets)


@TABLE.line("list-control-plane", "lists the control plane's folders", _HELD, tests=_CONTROL)
def _list_control_plane(facts: Facts) -> str:
    return each(os.listdir, facts.folders)


@TABLE.line("write-by-path", "makes a file outside of its places", _HELD_OR_SEALED, tests=_PATHS)
def _write_by_path(facts: Facts) -> str:
    return each(lambda folder: made(f"{folder}/planted"), (_target(facts), "/etc", "/usr", "/opt", "/"))


@TABLE.line("write-by-dots", "the same through `..`", _HELD, tests=_PATHS)
def _write_by_dots(facts: Facts) -> str:
    own = tempfile.gettempdir()
    return tried(lambda: made(own + "/.." * own.count("/") + _target(facts) + "/planted"))


@TABLE.line("write-by-link", "the same through a symbolic link, as the file and as its folder", _HELD, tests=_PATHS)
def _write_by_link(facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        os.symlink(_target(facts), f"{own}/folder")
        os.symlink(f"{_target(facts)}/planted", f"{own}/file")
        return worst([
            tried(lambda: made(f"{own}/folder/planted")), tried(lambda: opened(f"{own}/file", os.O_WRONLY | os.O_CREAT)),
        ])  # fmt: skip


@TABLE.line("hard-link", "links a secret into its own folder", _LINKS, tests=_PATHS)
def _hard_link(facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        return each(lambda path: os.link(path, f"{own}/taken"), facts.secrets)


@TABLE.line("rename", "moves a file out of its places, and a folder of the box into them", _LINKS, tests=_PATHS)
def _rename(facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        opened(f"{own}/mine", os.O_WRONLY | os.O_CREAT)
        out = tried(lambda: os.rename(f"{own}/mine", f"{_target(facts)}/planted"))
        if out == PASSED:
            os.unlink(f"{_target(facts)}/planted")
        return out


@TABLE.line("own-descriptors", "opens a name of no rights again through /proc/self/fd, and a path through /proc/self/root",
            _HELD, tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",))  # fmt: skip
def _own_descriptors(facts: Facts) -> str:
    def again(path: str) -> None:
        name = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            opened(f"/proc/self/fd/{name}")
        finally:
            os.close(name)

    return worst([each(again, facts.secrets), each(lambda path: opened(f"/proc/self/root{path}"), facts.secrets)])


@TABLE.line("below-a-descriptor", "opens below a folder that it holds by name only", _HELD,
            tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",))  # fmt: skip
def _below_a_descriptor(facts: Facts) -> str:
    folder = os.open(_target(facts), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return worst([
            tried(lambda: os.close(os.open("planted", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder))),
            tried(lambda: os.mkdir("planted.d", dir_fd=folder)), tried(lambda: os.listdir(f"/proc/self/fd/{folder}")),
        ])  # fmt: skip
    finally:
        os.close(folder)


@TABLE.line("rename-race", "swaps a folder for a link while another thread opens below it", _HELD,
            tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",))  # fmt: skip
def _rename_race(facts: Facts) -> str:
    """The reply of every open that went to the box's own file: one that passed is enough."""
    secret = next((path for path in facts.secrets if os.path.lexists(path)), "")
    if not secret:
        raise Absent("no secret to aim at")
    folder, name = os.path.split(secret)
    with tempfile.TemporaryDirectory() as own:
        os.mkdir(f"{own}/true")
        opened(f"{own}/true/{name}", os.O_WRONLY | os.O_CREAT)
        os.symlink(folder, f"{own}/link")
        return _race(own, f"{own}/now/{name}", secret)


def _race(own: str, path: str, secret: str) -> str:
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("true", "link"):
                with suppress(OSError):
                    os.symlink(f"{own}/{name}", f"{own}/next")
                    os.rename(f"{own}/next", f"{own}/now")

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    wanted, refused, until = os.stat(secret).st_ino, 0, time.monotonic() + _RACE_SECONDS
    try:
        while time.monotonic() < until:
            reply = tried(lambda: _is_not(path, wanted))
            if reply == PASSED:
                return PASSED
            refused += reply == "EACCES"
    finally:
        over.set()
        thread.join()
    return "EACCES" if refused else "EAGAIN"


def _is_not(path: str, inode: int) -> None:
    """Raises OSError, FileNotFoundError also for a file that is the attacker's own."""
    found = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(found).st_ino != inode:
            raise FileNotFoundError(2, "its own")
    finally:
        os.close(found)


@TABLE.line("device", "makes a device node", {"EACCES": "landlock", "EPERM": "kernel"}, tests=_PATHS)
def _device(_facts: Facts) -> str:
    with tempfile.TemporaryDirectory() as own:
        return tried(lambda: os.mknod(f"{own}/device", 0o20600, os.makedev(1, 3)))


@TABLE.line("own-oom-score", "asks the kernel to pick another process first when memory is short", _HELD,
            tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",))  # fmt: skip
def _own_oom_score(_facts: Facts) -> str:
    return tried(lambda: opened("/proc/self/oom_score_adj", os.O_WRONLY))


@TABLE.line("zeros", "maps the device of zeros as memory that processes share, which counts for none of them", _HELD, since=3,
            tests=("tests/unit/sandbox/test_anonymous.py::test_the_device_of_zeros_gives_no_shared_memory",))  # fmt: skip
def _zeros(_facts: Facts) -> str:
    def shared() -> None:
        with open("/dev/zero", "r+b", buffering=0) as device:
            mmap.mmap(device.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED).close()

    return tried(shared)


@TABLE.line("watch", "watches the box's folders, and another agent's, for names of what is made there (inotify)",
            {"EACCES": "reaper"}, since=3,
            tests=("tests/unit/sandbox/test_watching.py::test_what_may_not_be_read_is_not_watched",))  # fmt: skip
def _watch(facts: Facts) -> str:
    library = ctypes.CDLL(None, use_errno=True)
    instance = library.inotify_init1(os.O_CLOEXEC)
    if instance < 0:
        raise OSError(ctypes.get_errno(), "no instance")

    def watch(path: str) -> None:
        if library.inotify_add_watch(instance, path.encode(), _CREATED) < 0:
            raise OSError(ctypes.get_errno(), path)

    try:
        return each(watch, (*facts.folders, facts.neighbour.home))
    finally:
        os.close(instance)


def _target(facts: Facts) -> str:
    if not facts.writable:
        raise Absent("no folder of the control plane is known")
    return facts.writable


def _sibling(facts: Facts) -> int:
    if not facts.neighbour.pid:
        raise Absent("no neighbour")
    return facts.neighbour.pid


def _reaper() -> int:
    """The first process above this one that is not the attack's own: its session's leader has the reaper as parent."""
    leader = os.getsid(0)
    with open(f"/proc/{leader}/stat", encoding="ascii") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])

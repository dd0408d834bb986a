"""inotify: unread events are memory that the kernel keeps, so instances are limited; unreadable
paths cannot be watched."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.confined_process import EVERYWHERE, run_json

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls.inotify import INSTANCE_BYTES, MIN_INSTANCES

MIB = 1 << 20
FREE = Confinement(grants=(EVERYWHERE,))
FLOOD = """
import array, ctypes, errno, os, select, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def one(flags=0):
    made = libc.inotify_init1(flags)
    if made < 0: raise OSError(ctypes.get_errno(), "")
    return made
def flood():
    made = []
    try:
        while len(made) < 100: made.append(one())
    except OSError as error: return made, errno.errorcode[error.errno]
    return made, "passed"
"""

SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)
WATCH = f"""{FLOOD}
CREATE, ONLYDIR, DONT_FOLLOW, MASK_CREATE, MASK_ADD, ONESHOT = 0x100, 1 << 24, 1 << 25, 1 << 28, 1 << 29, 1 << 31
def watch(path, mask=CREATE, on=None):
    path = os.fsencode(path) if isinstance(path, (str, os.PathLike)) else path
    made = libc.inotify_add_watch(told if on is None else on, path, ctypes.c_uint32(mask))
    return made if made > 0 else errno.errorcode[ctypes.get_errno()]
def events(on=None):
    try: data = os.read(told if on is None else on, 1 << 16)
    except BlockingIOError: return []
    found = []
    while data:
        number, mask, _, size = struct.unpack_from("iIII", data)
        found.append([number, hex(mask), data[16 : 16 + size].rstrip(b"\\0").decode()])
        data = data[16 + size :]
    return found
told = one(os.O_NONBLOCK)
"""


def flooded(script: str, memory: int) -> dict[str, object]:
    return run_json(FLOOD + script, FREE, memory=memory)


@pytest.mark.parametrize(
    ("memory", "most"), [(16 * MIB, MIN_INSTANCES), (160 * MIB, 160 * MIB // 4 // INSTANCE_BYTES)]
)
def test_instances_end_below_a_quarter_of_the_memory(memory: int, most: int) -> None:
    """When they are closed there is capacity again."""
    found = flooded("""
made, why = flood()
for one_of_them in made: os.close(one_of_them)
again, _ = flood()
said(made=len(made), why=why, again=len(again))
""", memory)  # fmt: skip
    assert found == {"made": most, "why": "EMFILE", "again": most}


def test_those_under_way_in_a_socket_are_still_there() -> None:
    """No process has them open, and they use as much."""
    found = flooded("""
near, far = socket.socketpair()
made, _ = flood()
socket.send_fds(near, [b"x"], made)
for one_of_them in made: os.close(one_of_them)
hidden, _ = flood()
socket.recv_fds(far, 1, 100)
said(made=len(made), hidden=len(hidden))
""", 160 * MIB)  # fmt: skip
    assert found == {"made": 5, "hidden": 0}


def test_an_instance_does_what_it_does() -> None:
    """It reports a file; flags are kept, and unknown ones refused."""
    found = flooded("""
import fcntl, tempfile
told = one(os.O_NONBLOCK | os.O_CLOEXEC)
folder = tempfile.mkdtemp()
libc.inotify_add_watch(told, folder.encode(), 0x100)
open(folder + "/made", "w").close()
try: one(1)
except OSError as error: why = errno.errorcode[error.errno]
flags = bool(fcntl.fcntl(told, fcntl.F_GETFL) & os.O_NONBLOCK), bool(fcntl.fcntl(told, fcntl.F_GETFD))
said(told=b"made" in os.read(told, 1024), flags=flags, old=libc.inotify_init() >= 0, why=why)
""", 160 * MIB)  # fmt: skip
    assert found == {"told": True, "flags": [True, True], "old": True, "why": "EINVAL"}


def test_what_may_not_be_read_is_not_watched(tmp_path: Path) -> None:
    """By path, `..`, links, descriptors; a directory of which only known names are granted, and one
    without its content. Names of other agents' files would be reported."""
    for name in ("mine", "closed", "unlisted", "bare"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("text")
    (tmp_path / "mine/out").symlink_to(tmp_path / "closed")
    (tmp_path / "single").write_text("text")
    grants = (
        PathRule(str(tmp_path / "mine"), "rlwm"), PathRule(str(tmp_path / "unlisted"), "rwm"),
        PathRule(str(tmp_path / "bare"), "rlw", recursive=False), PathRule(str(tmp_path / "single"), "r", recursive=False),
    )  # fmt: skip
    found = run_json(
        WATCH + """
top = sys.argv[1]
os.chdir(top + "/mine")
place = os.open(top + "/closed", os.O_PATH)
paths = {
    "closed": top + "/closed", "file": top + "/closed/file", "above": top, "dots": "../closed", "link": "out",
    "through": "out/file", "held": f"/proc/self/fd/{place}", "unlisted": top + "/unlisted", "bare": top + "/bare",
    "root": "/", "ours": ".", "own": "file", "named": top + "/unlisted/file", "single": top + "/single",
    "itself": ("out", CREATE | DONT_FOLLOW), "none": "none",
}
said(**{name: watch(*path) if isinstance(path, tuple) else watch(path) for name, path in paths.items()})
""",
        Confinement(grants=(*SYSTEM, *grants)), str(tmp_path), memory=160 * MIB,
    )  # fmt: skip
    allowed = {"ours": 1, "own": 2, "named": 3, "single": 4, "itself": 5, "none": "ENOENT"}
    assert {name: found.pop(name) for name in allowed} == allowed
    assert set(found.values()) == {"EACCES"}, found


def test_a_watch_is_the_kernels(tmp_path: Path) -> None:
    """Masks mean what they mean, and errors are the usual ones."""
    found = run_json(
        WATCH + """
os.chdir(sys.argv[1])
os.mkdir("folder"); os.symlink("folder", "link"); open("file", "w").close()
reading, writing = os.pipe()
words = dict(
    first=watch("folder"), again=watch(b"./folder/"), link=watch("link"), itself=watch("link", CREATE | DONT_FOLLOW),
    only=watch("file", CREATE | ONLYDIR), anew=watch("folder", CREATE | MASK_CREATE),
    both=watch("folder", CREATE | MASK_CREATE | MASK_ADD), nothing=watch("folder", 0), empty=watch(b""),
    bad=watch(ctypes.c_void_p(8)), long=watch("x" * 5000), closed=watch("folder", on=999), pipe=watch("folder", on=reading),
)
open("folder/made", "w").close()
once = watch("folder", 0x200 | MASK_ADD | ONESHOT)
os.unlink("folder/made"); open("folder/more", "w").close()
said(words=words, once=once, events=events(), removed=libc.inotify_rm_watch(told, words["itself"]))
""",
        FREE, str(tmp_path), memory=160 * MIB,
    )  # fmt: skip
    assert found == {
        "words": {
            "first": 1, "again": 1, "link": 1, "itself": 2, "only": "ENOTDIR", "anew": "EEXIST", "both": "EINVAL",
            "nothing": "EINVAL", "empty": "ENOENT", "bad": "EFAULT", "long": "ENAMETOOLONG", "closed": "EBADF",
            "pipe": "EINVAL",
        },
        "once": 1, "events": [[1, "0x100", "made"], [1, "0x200", "made"], [1, "0x8000", ""]], "removed": 0,
    }  # fmt: skip


def test_a_watch_goes_to_its_own_instance(tmp_path: Path) -> None:
    """Where the instance was copied, sent, inherited, and its first number reused by another; in
    another thread."""
    found = run_json(
        WATCH + """
import threading
os.chdir(sys.argv[1])
names = [f"folder{number}" for number in range(6)]
for name in names: os.mkdir(name)
other, third = one(os.O_NONBLOCK), one(os.O_NONBLOCK)
copy = os.dup(other)
os.close(other)
fresh = one(os.O_NONBLOCK)
assert fresh == other
near, far = socket.socketpair()
socket.send_fds(near, [b"x"], [third])
os.close(third)
sent = socket.recv_fds(far, 1, 1)[1][0]
watch(names[0]); watch(names[1], on=copy); watch(names[2], on=sent); watch(names[3], on=fresh)
thread = threading.Thread(target=watch, args=(names[4],), kwargs={"on": copy})
thread.start(); thread.join()
if (child := os.fork()) == 0: watch(names[5], on=sent); os._exit(0)
os.waitpid(child, 0)
for name in names: open(name + "/" + name, "w").close()
said(told=[[name for _, _, name in events(one)] for one in (told, copy, sent, fresh)])
""",
        FREE, str(tmp_path), memory=160 * MIB,
    )  # fmt: skip
    assert found == {
        "told": [["folder0"], ["folder1", "folder4"], ["folder2", "folder5"], ["folder3"]]
    }


async def test_what_the_agent_closed_is_let_go(tmp_path: Path) -> None:
    """The kernel has so many instances for all processes of a user: the reaper's own are closed
    soon, also where no other is created."""
    script = """
kept, gone = one(), one()
os.close(gone)
open(sys.argv[1] + "/reaper", "w").write(str(os.getppid()))
while not os.path.exists(sys.argv[1] + "/over"): select.select([], [], [], 0.02)
said()
"""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run_json, WATCH + script, FREE, str(tmp_path), memory=160 * MIB)
        try:
            pid = tmp_path / "reaper"
            await wait_until(lambda: pid.exists() and bool(pid.read_text()), "it has closed one")
            # `told` and `kept`.
            await wait_until(
                lambda: instances(Path(f"/proc/{pid.read_text()}/fd")) == 2, "one is let go"
            )
        finally:
            (tmp_path / "over").touch()
        assert done.result() == {}


def instances(folder: Path) -> int:
    """How many that process has open; one may be closed while the others are counted."""
    found = 0
    for one in folder.iterdir():
        with suppress(FileNotFoundError):
            found += one.readlink().name == "anon_inode:inotify"
    return found

"""Mode, times, owner and attributes of files: own ones within the writable paths, no others by any
name."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from support.confined_process import run_json

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement

SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)
DEVICES = tuple(PathRule(f"/dev/{name}", "rwd", recursive=False) for name in ("null", "urandom"))
TOOLS = """
mine, other = sys.argv[1:]
import stat
mode = lambda path: stat.S_IMODE(os.lstat(path).st_mode)
def raw(name, *arguments):
    held = [ctypes.c_char_p(one) if isinstance(one, bytes) else one for one in arguments]
    return errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(*held) < 0 else "passed"
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A directory that is granted and one that is not, of a similar name; a link from the first
    leads to the second."""
    mine, other = tmp_path / "mine", tmp_path / "mine-not"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "file").write_text("text")
        (folder / "file").chmod(0o644)
        os.utime(folder / "file", (1000, 1000))
    (mine / "link").symlink_to(other / "file")
    (mine / "near").symlink_to("file")
    (mine / "way-out").symlink_to(other)
    return mine, other


def granted(mine: Path) -> Confinement:
    return Confinement(grants=(*SYSTEM, PathRule(str(mine), "rlwmx"), *DEVICES))


def test_ones_own_files_change(places: tuple[Path, Path]) -> None:
    """By path, relative to the directory of the process or to a descriptor, by a link, by
    /proc/self/fd, by a descriptor."""
    mine, other = places
    found = run_json(
        TOOLS + """
os.chdir(mine)
folder, held, words = os.open(".", os.O_RDONLY), os.open("file", os.O_RDONLY), {}
def change(name, what, *more, want):
    words[name] = [tried(lambda: what(*more)), oct(mode("file")) == oct(want)]
change("path", os.chmod, mine + "/file", 0o600, want=0o600)
change("near", os.chmod, "file", 0o640, want=0o640)
change("link", os.chmod, "near", 0o641, want=0o641)
change("at", lambda: os.chmod("file", 0o642, dir_fd=folder), want=0o642)
change("held", os.chmod, held, 0o643, want=0o643)
change("proc", os.chmod, f"/proc/self/fd/{held}", 0o644, want=0o644)
change("dots", os.chmod, mine + "/../mine/./file", 0o645, want=0o645)
os.utime("file", (5, 6)); five = os.stat("file").st_mtime
os.utime("file", ns=(7, 8_000_000_009)); eight = os.stat("file").st_mtime_ns
os.utime("file"); now = abs(os.stat("file").st_mtime - time.time()) < 5
os.utime(held, (1, 2)); two = os.stat("file").st_mtime
os.utime("near", (3, 4), follow_symlinks=False); link = (os.lstat("near").st_mtime, os.stat("file").st_mtime)
owner = tried(lambda: os.chown("file", os.getuid(), -1)), tried(lambda: os.lchown("near", -1, os.getgid()))
os.mkdir("folder"); os.chmod("folder", 0o2755)
said(words=words, times=[five, eight, now, two, *link], owner=owner, folder=oct(mode("folder")))
""",
        granted(mine), str(mine), str(other),
    )  # fmt: skip
    assert found == {
        "words": {name: ["passed", True] for name in ("path", "near", "link", "at", "held", "proc", "dots")},
        "times": [6, 8_000_000_009, True, 2, 4, 2], "owner": ["passed", "passed"], "folder": "0o2755",
    }  # fmt: skip


def test_nothing_else_does(places: tuple[Path, Path]) -> None:
    """A directory outside, by path, `..`, links, read-only descriptors, /proc; a device; the owner
    of a file; its attributes."""
    mine, other = places
    found = run_json(
        TOOLS + """
os.chdir(mine)
place = os.open(other, os.O_PATH)
at = place.to_bytes(4, "little")
self_cwd = f"/proc/self/cwd/../mine-not/file"
said(
    path=tried(lambda: os.chmod(other, 0)), file=tried(lambda: os.chmod(other + "/file", 0)),
    dots=tried(lambda: os.chmod("../mine-not/file", 0)), link=tried(lambda: os.chmod("link", 0)),
    parent=tried(lambda: os.chmod("way-out/file", 0)), magic=tried(lambda: os.chmod(self_cwd, 0)),
    proc=tried(lambda: os.chmod(f"/proc/self/fd/{place}", 0)), at=tried(lambda: os.chmod("file", 0, dir_fd=place)),
    empty=raw("fchmodat", place, b"", 0, 0x1000), device=tried(lambda: os.chmod("/dev/null", 0)),
    system=tried(lambda: os.chmod("/usr/bin/env", 0o755)), root=tried(lambda: os.chmod("/", 0o755)),
    times=tried(lambda: os.utime(other + "/file", (1, 2))), times_link=tried(lambda: os.utime("link", (1, 2))),
    times_empty=raw("utimensat", place, b"", None, 0x1000), times_at=tried(lambda: os.utime("file", (1, 2), dir_fd=place)),
    setuid=tried(lambda: os.chmod("file", 0o4755)), setgid=tried(lambda: os.chmod("file", 0o2755)),
    owner=tried(lambda: os.chown("file", 4242, -1)), group=tried(lambda: os.lchown("near", -1, 4242)),
    xattr=tried(lambda: os.setxattr("file", "user.x", b"y")), no_xattr=tried(lambda: os.removexattr("file", "user.x")),
    none=tried(lambda: os.chmod("none", 0)), long=tried(lambda: os.chmod("x" * 5000, 0)), bad=raw("chmod", ctypes.c_void_p(8), 0),
    nothing=raw("chmod", b"", 0), flags=raw("utimensat", -100, b"file", None, 0x4000), closed=raw("fchmodat", 999, b"file", 0, 0),
)
""",
        granted(mine), str(mine), str(other),
    )  # fmt: skip
    odd = {
        "magic": "ELOOP", "none": "ENOENT", "long": "ENAMETOOLONG", "bad": "EFAULT", "nothing": "ENOENT", "flags": "EINVAL",
        "closed": "EBADF", "xattr": "ENOTSUP",
    }  # fmt: skip
    assert {name: found.pop(name) for name in odd} == odd
    assert found.pop("empty") in ("EPERM", "EINVAL")  # a libc may refuse the flag by itself
    assert set(found.values()) == {"EPERM"}, found
    assert stat.S_IMODE((other / "file").stat().st_mode) == 0o644
    assert (other / "file").stat().st_mtime == 1000
    assert not (mine / "file").stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_a_descriptor_that_reads_changes_nothing(places: tuple[Path, Path]) -> None:
    """Mode, times, owner, attributes, flags and leases of what the agent may open but not write; its own file changes."""
    mine, other = places
    found = run_json(
        TOOLS + """
import fcntl, struct
def by(fd):
    return dict(
        mode=tried(lambda: os.fchmod(fd, 0o600)), setuid=tried(lambda: os.fchmod(fd, 0o4755)),
        times=tried(lambda: os.utime(fd, (5, 6))), now=tried(lambda: os.utime(fd)), owner=tried(lambda: os.fchown(fd, 4242, -1)),
        same=tried(lambda: os.fchown(fd, os.getuid(), -1)), xattr=tried(lambda: os.setxattr(fd, "user.x", b"y")),
        no_xattr=tried(lambda: os.removexattr(fd, "user.x")),
        flags=tried(lambda: fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x40))),
        lease=tried(lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)),
    )
told = by(os.open(other + "/file", os.O_RDONLY))
folder = tried(lambda: os.fchmod(os.open(other, os.O_RDONLY), 0))
own = by(os.open(mine + "/file", os.O_RDONLY))
reading, writing = os.pipe()
said(told=told, folder=folder, own=own, pipe=tried(lambda: os.fchmod(writing, 0)), closed=tried(lambda: os.fchmod(999, 0)))
""",
        Confinement(grants=(*SYSTEM, PathRule(str(mine), "rlwmx"), PathRule(str(other), "rl"), *DEVICES)), str(mine), str(other),
    )  # fmt: skip
    never = {
        "setuid": "EPERM", "owner": "EPERM", "xattr": "ENOTSUP", "no_xattr": "EPERM", "flags": "EPERM", "lease": "EPERM",
    }  # fmt: skip
    assert found == {
        "told": {**never, "same": "passed", "mode": "EPERM", "times": "EPERM", "now": "EPERM"}, "folder": "EPERM",
        "own": {**never, "same": "passed", "mode": "passed", "times": "passed", "now": "passed"},
        "pipe": "EPERM", "closed": "EBADF",
    }  # fmt: skip
    assert stat.S_IMODE((other / "file").stat().st_mode) == 0o644
    assert (other / "file").stat().st_mtime == 1000
    assert stat.S_IMODE((mine / "file").stat().st_mode) == 0o600


def test_a_path_that_changes_during_the_call_leads_nowhere(places: tuple[Path, Path]) -> None:
    """One thread swaps a link between inside and outside, another writes the outside into the path all the time."""
    mine, other = places
    found = run_json(
        TOOLS + """
os.chdir(mine)
over = False
inside, outside = b"swap/file".ljust(64, b"\\0"), (other + "/file").encode().ljust(64, b"\\0")
size = max(len(inside), len(outside)) + 64
held = ctypes.create_string_buffer(inside, size)
os.mkdir("here"); open("here/file", "w").close()
os.symlink("here", "swap"); os.symlink(other, "out"); os.symlink("here", "in")
def links():
    while not over:
        for target in ("out", "in"):
            os.symlink(os.readlink(target), "new"); os.rename("new", "swap")
def bytes_():
    while not over:
        ctypes.memmove(held, outside, len(outside)); ctypes.memmove(held, inside, len(inside))
threads = [threading.Thread(target=links), threading.Thread(target=bytes_)]
for thread in threads: thread.start()
sys.setswitchinterval(1e-6)
words = {}
for _ in range(1500):
    word = "passed" if libc.chmod(held, 0o600) == 0 else errno.errorcode[ctypes.get_errno()]
    words[word] = words.get(word, 0) + 1
over = True
said(words=words, mode=oct(mode("here/file")))
""",
        granted(mine), str(mine), str(other),
    )  # fmt: skip
    words = found["words"]
    assert isinstance(words, dict)
    assert set(words) <= {"passed", "EPERM", "ENOENT"}, words
    assert words["passed"] > 0
    assert words["EPERM"] > 0
    assert stat.S_IMODE((other / "file").stat().st_mode) == 0o644


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_tools_go_on_working(places: tuple[Path, Path]) -> None:
    """Copies that keep modes and times, archives, git, make-like touches: as outside."""
    mine, other = places
    script = """
import subprocess
def run(*argv):
    done = subprocess.run(argv, cwd=mine, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": mine})
    return done.returncode if not done.returncode else done.stderr
os.makedirs(mine + "/tree/below"); open(mine + "/tree/below/x", "w").close(); os.chmod(mine + "/tree/below/x", 0o751)
os.symlink("x", mine + "/tree/below/y")
said(
    cp=run("cp", "-rp", "tree", "copy"), archive=run("cp", "-a", "tree", "twin"), tar=run("tar", "cf", "x.tar", "tree"),
    untar=run("sh", "-c", "mkdir out && tar xpf x.tar -C out"), touch=run("touch", "-d", "2001-01-01", "tree/below/x"),
    mv=run("mv", "twin", "moved"), install=run("install", "-m", "700", "file", "installed"), init=run("git", "init", "-q", "repo"),
    add=run("sh", "-c", "cp file repo/ && cd repo && git add . && git -c user.name=x -c user.email=x@x commit -qm x"),
    modes=[oct(mode(mine + f"/{name}/below/x")) for name in ("copy", "moved", "out/tree")],
)
"""
    found = run_json(TOOLS + script, granted(mine), str(mine), str(other))
    assert found.pop("modes") == ["0o751"] * 3
    assert set(found.values()) == {0}, found

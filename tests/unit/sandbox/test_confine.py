"""Landlock and the filter against the real kernel: what a confined process is refused, and what it can still do."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.confined_process import run_json, run_python
from support.confinements import FREE, SYSTEM

from agentbox.core.linux import landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement, missing_mechanisms
from agentbox.sandbox.seccomp.installation import current_machine

USER = 1000  # owner of the tests' processes when they run as root


def test_this_kernel_confines() -> None:
    """The tests below have a meaning only where Landlock has everything that is requested."""
    assert missing_mechanisms(landlock.abi()) == {}


def test_paths(tmp_path: Path) -> None:
    """Inside of the grants everything works, outside nothing, by whatever name; a link counts as
    its target."""
    mine, other = tmp_path / "mine", tmp_path / "mine-not"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "file").write_text("text")
    (mine / "way-out").symlink_to(other)
    found = run_json(
        """
mine, other = sys.argv[1:]
def write(path):
    with open(path, "w") as stream:
        stream.write("x")
def script(folder):
    write(folder + "/run"); os.chmod(folder + "/run", 0o755)
    with open(folder + "/run", "w") as stream: stream.write("#!/bin/sh\\n")
    os.posix_spawn(folder + "/run", ["run"], {})
said(
    read=tried(lambda: open(mine + "/file").close()), write=tried(lambda: write(mine + "/file")),
    make=tried(lambda: os.makedirs(mine + "/a/b")), move=tried(lambda: os.rename(mine + "/file", mine + "/a/b/file")),
    truncate=tried(lambda: os.truncate(mine + "/a/b/file", 0)), list=tried(lambda: os.listdir(mine)),
    execute=tried(lambda: script(mine)), fifo=tried(lambda: os.mkfifo(mine + "/fifo")),
    read_other=tried(lambda: open(other + "/file").close()), write_other=tried(lambda: write(other + "/file")),
    make_other=tried(lambda: os.mkdir(other + "/x")), list_other=tried(lambda: os.listdir(other)),
    truncate_other=tried(lambda: os.truncate(other + "/file", 0)), remove_other=tried(lambda: os.unlink(other + "/file")),
    dots=tried(lambda: open(mine + "/../mine-not/file").close()), link=tried(lambda: open(mine + "/way-out/file").close()),
    hard=tried(lambda: os.link(other + "/file", mine + "/hard")), out=tried(lambda: os.rename(mine + "/run", other + "/run")),
    device=tried(lambda: os.mknod(mine + "/device", 0o20600, os.makedev(1, 3))),
)
""",
        Confinement(grants=(*SYSTEM, PathRule(str(mine), "rlwmx"))), str(mine), str(other),
    )  # fmt: skip
    assert {
        name: found.pop(name)
        for name in ("read", "write", "make", "move", "truncate", "list", "execute", "fifo")
    } == (
        dict.fromkeys(
            ("read", "write", "make", "move", "truncate", "list", "execute", "fifo"), "passed"
        )
    )
    assert found.pop("hard") in ("EXDEV", "EACCES")
    assert found.pop("out") in ("EXDEV", "EACCES")
    assert found.pop("device") in ("EACCES", "EPERM")
    assert set(found.values()) == {"EACCES"}, found
    assert (other / "file").read_text() == "text"


def test_execute_is_a_right_of_its_own(tmp_path: Path) -> None:
    """What can be read cannot be run."""
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    script = "said(run=tried(lambda: os.posix_spawn(sys.argv[1], ['x'], {})), read=tried(lambda: open(sys.argv[1]).close()))"
    found = run_json(
        script, Confinement(grants=(*SYSTEM, PathRule(str(tmp_path), "rl"))), str(program)
    )
    assert found == {"run": "EACCES", "read": "passed"}


def test_a_single_file_opens_no_folder(tmp_path: Path) -> None:
    """A grant without its content does nothing for a directory, and a grant of a missing path is no
    error."""
    (tmp_path / "file").touch()
    grants = (
        *SYSTEM,
        PathRule(str(tmp_path), "rl", recursive=False),
        PathRule(str(tmp_path / "none"), "r"),
    )
    script = "said(list=tried(lambda: os.listdir(sys.argv[1])), read=tried(lambda: open(sys.argv[1] + '/file').close()))"
    assert set(run_json(script, Confinement(grants=grants), str(tmp_path)).values()) == {"EACCES"}


def test_strangers_cannot_be_reached() -> None:
    """No signal, memory, environment, descriptor, limit or priority of a process outside; all of one's own."""
    same = {"user": USER, "group": USER} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "100"], **same) as stranger:  # type: ignore[call-overload]
        found = run_json(
            """
pid = int(sys.argv[1])
child = os.posix_spawn("/bin/sleep", ["sleep", "100"], {})
own = tried(lambda: os.kill(child, signal.SIGTERM))
said(
    kill=tried(lambda: os.kill(pid, 0)), environ=tried(lambda: open(f"/proc/{pid}/environ").read()),
    maps=tried(lambda: open(f"/proc/{pid}/maps").read()), fds=tried(lambda: os.readlink(f"/proc/{pid}/fd/0")),
    pidfd=tried(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 0)),
    nice=tried(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)), affinity=tried(lambda: os.sched_setaffinity(0, {0})),
    own=own, own_environ=tried(lambda: open("/proc/self/environ").read()), own_nice=tried(lambda: os.nice(1)),
)
""",
            FREE, str(stranger.pid), user=USER if same else 0,
        )  # fmt: skip
        stranger.terminate()
    assert {found.pop(name) for name in ("own", "own_environ", "own_nice")} == {"passed"}
    assert set(found.values()) <= {"EPERM", "EACCES"}, found


def test_no_socket_leads_out(tmp_path: Path) -> None:
    """Every family but TCP, a path, an abstract name, another process's loopback port; pairs stay
    allowed."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()
        found = run_json(
            """
port, door = int(sys.argv[1]), sys.argv[2]
def connect(family, kind, to):
    with socket.socket(family, kind) as one: one.connect(to)
def fast(flags):
    with socket.socket() as one: one.sendto(b"x", flags, ("127.0.0.1", port))
def pair():
    near, far = socket.socketpair(); near.send(b"x"); assert far.recv(1) == b"x"
said(
    tcp=tried(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port))),
    tcp6=tried(lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port))),
    udp=tried(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53))),
    path=tried(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, door)),
    abstract=tried(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\\0x")),
    netlink=tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)),
    packet=tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)),
    dgram_pair=tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    fastopen=tried(lambda: fast(0x20000000)), pair=tried(pair),
)
""",
            FREE, str(server.getsockname()[1]), str(tmp_path / "door"),
        )  # fmt: skip
    assert found.pop("pair") == "passed"
    assert set(found.values()) == {"EACCES"}, found


def test_a_granted_port_is_open_and_no_other() -> None:
    """TCP connect to that port, and to no other."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        ports = [server.getsockname()[1] for server in (one, two)]
        script = """
def connect(port):
    with socket.socket() as one: one.connect(("127.0.0.1", int(port)))
said(granted=tried(lambda: connect(sys.argv[1])), other=tried(lambda: connect(sys.argv[2])))
"""
        granted = replace(FREE, ports=(ports[0],))
        assert run_json(script, granted, *map(str, ports)) == {
            "granted": "passed",
            "other": "EACCES",
        }
        everything = run_json(script, replace(FREE, ports=None), *map(str, ports))
        assert set(everything.values()) == {"passed"}


def test_calls_are_refused() -> None:
    """Each through the kernel's own entry, with arguments that the kernel would check."""
    names = (
        "io_setup",
        "ptrace",
        "unshare",
        "mount",
        "bpf",
        "userfaultfd",
        "keyctl",
        "shmget",
        "mq_open",
        "perf_event_open",
        "sethostname",
        "settimeofday",
        "clone3",
    )
    numbers = {name: current_machine().number(name) for name in (*names, "io_uring_setup")}
    found = run_json(
        f"said(**{{name: call(number, 0, 0, 0, 0, 0) for name, number in {numbers!r}.items()}})",
        FREE,
    )
    assert {found.pop("clone3"), found.pop("io_uring_setup"), found.pop("io_setup")} == {"ENOSYS"}
    assert set(found.values()) == {"EPERM"}, found


def test_nobody_elses_turn_changes() -> None:
    """Of a process alone, and of oneself: with 0 for a user or a group it is all processes of that. Nor is any other number."""
    names = ("setpriority", "ioprio_set")
    numbers = {name: current_machine().number(name) for name in names}
    alone = 54_321  # the number of a user without other processes: a call that passes changes no other process
    same = {"user": alone, "group": alone} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "100"], **same) as stranger:  # type: ignore[call-overload]
        before = os.getpriority(os.PRIO_PROCESS, stranger.pid)
        found = run_json(
            f"""
nice, io = {numbers["setpriority"]}, {numbers["ioprio_set"]}
said(
    user=call(nice, 2, 0, 19), group=call(nice, 1, 0, 19), io_user=call(io, 3, 0, 3 << 13), io_group=call(io, 2, 0, 3 << 13),
    own_user=call(nice, 2, os.getuid(), 19), other=call(nice, 0, {stranger.pid}, 19), io_other=call(io, 1, {stranger.pid}, 3 << 13),
    own=call(nice, 0, 0, 19), io_own=call(io, 1, 0, 3 << 13),
)
""",
            FREE, user=alone if same else 0,
        )  # fmt: skip
        after = os.getpriority(os.PRIO_PROCESS, stranger.pid)
        stranger.terminate()
    assert {found.pop("own"), found.pop("io_own")} == {"passed"}
    assert set(found.values()) == {"EPERM"}, found
    assert after == before


def test_a_copy_needs_no_reference() -> None:
    """Between a file and a socket or pipe: a buffer would keep complete pages for the bytes that it
    counts. Libraries copy."""
    numbers = [current_machine().number(name) for name in ("splice", "tee", "vmsplice", "sendfile")]
    found = run_json(
        f"""
import shutil, tempfile
with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as two:
    one.write(b"text"); one.flush()
    shutil.copyfile(one.name, two.name)
    near, far = socket.socketpair()
    one.seek(0); near.sendfile(one)
    said(copied=two.read().decode(), sent=far.recv(9).decode(), calls=[call(number, 0, 0, 0, 0, 0, 0) for number in {numbers}])
""",
        FREE,
    )  # fmt: skip
    assert found == {"copied": "text", "sent": "text", "calls": ["EINVAL"] * 4}


def test_no_option_leads_a_socket_out() -> None:
    """Not to an interface, a route, or a filter; those of every day are set."""
    found = run_json(
        """
one, six = socket.socket(), socket.socket(socket.AF_INET6)
def given(level, option, value=1, to=one): return tried(lambda: to.setsockopt(level, option, value))
said(
    device=given(1, 25, b"eth0"), index=given(1, 62, 2), mark=given(1, 36), filter=given(1, 26, bytes(16)),
    route=given(0, 4, bytes.fromhex("8307047f00000100")), unicast=given(0, 50, socket.htonl(2)), member=given(0, 35, bytes(12)),
    six=given(41, 50, bytes(20), six), six_unicast=given(41, 76, 1, six), ulp=given(6, 31, b"tls"),
    plain=[given(1, 2), given(1, 9), given(6, 1), given(6, 4, 60), given(0, 1, 8), given(41, 26, 1, six), given(6, 18, 1000)],
)
""",
        FREE,
    )
    assert found.pop("plain") == ["passed"] * 7
    assert set(found.values()) == {"EPERM"}, found


def test_threads_and_children_work() -> None:
    """A program of many parts runs as before: threads, fork, vfork, pools, semaphores in shared memory."""
    script = """
import multiprocessing, subprocess
thread = threading.Thread(target=int); thread.start(); thread.join()
pid = os.fork()
if pid == 0: os._exit(3)
forked = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
with multiprocessing.get_context("fork").Pool(2) as pool: pooled = pool.map(abs, [-1, -2])
said(forked=forked, pooled=pooled, shell=subprocess.run(["sh", "-c", "echo a | cat"], stdout=-1).stdout.decode())
"""
    assert run_json(script, FREE) == {"forked": 3, "pooled": [1, 2], "shell": "a\n"}


def test_a_foreign_call_kills() -> None:
    """A call with the bit of the other ABI ends the process by SIGSYS, not by an error."""
    if not current_machine().other_abi:
        pytest.skip("this architecture has one ABI")
    assert run_python("call(0x40000000 | 39)", FREE).returncode == -31


def test_it_holds_for_children_after_exec() -> None:
    """The confinement of a parent is the child's, whatever the child runs."""
    script = "import subprocess; said(code=subprocess.run([sys.executable, '-c', 'import socket; socket.socket(1)']).returncode)"
    assert run_json(script, FREE) == {"code": 1}
    assert (
        subprocess.run(
            [sys.executable, "-c", "import socket; socket.socket(1)"], check=False
        ).returncode
        == 0
    )

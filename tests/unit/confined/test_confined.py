"""A program of a feature as supervisord starts it, against the real kernel: what it reaches, and what it is."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plans import plan_of
from support.program_box import JUPYTER, NAME, ProgramBox

from agentbox.plan.model import Ruleset


@pytest.fixture
def box(tmp_path: Path) -> ProgramBox:
    return ProgramBox(tmp_path)


@pytest.fixture
def stranger(box: ProgramBox) -> Iterator[tuple[int, Path]]:
    """A TCP port and a socket of another program in the box."""
    path = box.paths.run / "agent-host.sock"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))
        unix.listen()
        yield tcp.getsockname()[1], path


def test_what_is_of_others_is_closed(box: ProgramBox) -> None:
    """Secrets, tokens, agents.db, the journal, another program's state and temporary files: neither read nor written nor
    listed, by name or by a link, and no process of theirs gets a signal."""
    (box.paths.workspace / "link").symlink_to(box.closed["secret"])
    found = box.run_json(
        """
paths = json.loads(sys.argv[1]); work = sys.argv[2]
said(**{f"read {name}": tried(lambda: read(path)) for name, path in paths.items()},
     **{f"write {name}": tried(lambda: write(path)) for name, path in paths.items()},
     **{f"list {name}": tried(lambda: os.listdir(os.path.dirname(path))) for name, path in paths.items()},
     link=tried(lambda: read(work + "/link")),
     root=tried(lambda: os.listdir("/")), signal=tried(lambda: os.kill(os.getppid(), 0)))
""",
        json.dumps({name: str(path) for name, path in box.closed.items()}), box.paths.workspace,
    )  # fmt: skip
    assert len(found) == 3 * len(box.closed) + 3
    assert found.pop("signal") == "EPERM"
    assert set(found.values()) == {"EACCES"}, found
    assert {path.read_text() for path in box.closed.values()} == {"theirs"}


def test_it_does_its_work(box: ProgramBox) -> None:
    """Its volume, the workspace if it runs files there too, its password, a temporary directory,
    shared memory, a terminal, children, its port and free ports."""
    found = box.run_json(
        """
work, state, password, port = sys.argv[1:]
def script():
    with open(work + "/run", "w") as stream: stream.write("#!/bin/sh\\nexit 0\\n")
    os.chmod(work + "/run", 0o755); subprocess.run([work + "/run"], check=True)
def terminal():
    near, far = os.openpty(); open(os.ttyname(far)).close()
def shared():
    from multiprocessing import shared_memory
    shared_memory.SharedMemory(create=True, size=64).unlink()
def threads():
    import asyncio, threading
    asyncio.run(asyncio.sleep(0))
    def scheduled():
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_OTHER, os.sched_param(0)); done.append(1)
    done = []; thread = threading.Thread(target=scheduled); thread.start(); thread.join()
    if not done: raise OSError(errno.EPERM, "a thread is not scheduled")
said(work=tried(script), state=tried(lambda: (os.mkdir(state + "/a"), write(state + "/a/b"))), password=tried(lambda: read(password)),
     temp=tried(lambda: tempfile.NamedTemporaryFile().close()), terminal=tried(terminal), shared=tried(shared),
     port=tried(lambda: serve(int(port))), nobodys=tried(lambda: serve(0)), pair=tried(lambda: socket.socketpair()),
     loop=tried(threads), affinity=tried(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
     memory=tried(lambda: os.memfd_create("x")))
""",
        box.paths.workspace, box.paths.slot("jupyter"), box.paths.password("jupyter-token"), _free(box),
    )  # fmt: skip
    assert set(found.values()) == {"passed"}, found


def _free(box: ProgramBox) -> int:
    """A port that the plan now assigns to the program."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    box.change_ruleset(listens=(port,))
    return port


def test_ports_and_sockets(box: ProgramBox, stranger: tuple[int, Path]) -> None:
    """It binds no port of the box's, even a free one, and reaches no socket of the file system."""
    port, path = stranger
    found = box.run_json(
        """
port, path, api = sys.argv[1:]
said(connect=tried(lambda: connect(int(port))), api=tried(lambda: serve(int(api))), unix=tried(lambda: unix(path)),
     raw=tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)), packet=tried(lambda: socket.socket(17, 3)),
     pair=tried(lambda: socket.socketpair(type=socket.SOCK_DGRAM)), below=tried(lambda: serve(80)))
""",
        port, path, box.plan.api.port,
    )  # fmt: skip
    assert found.pop("connect") == "passed"
    assert set(found.values()) <= {"EACCES", "EPERM"}, found


def test_without_network_nothing_is_reached(box: ProgramBox, stranger: tuple[int, Path]) -> None:
    """It listens where its file allows, and neither connects nor serves elsewhere, over any
    transport."""
    port = _free(box)
    box.change_ruleset(network=False)
    found = box.run_json(
        """
far, own = map(int, sys.argv[1:])
def fast_open():
    with socket.socket() as one: one.sendto(b"x", 0x20000000, ("127.0.0.1", far))
said(own=tried(lambda: serve(own)), connect=tried(lambda: connect(far)), fast=tried(fast_open), other=tried(lambda: serve(0)),
     udp=tried(lambda: socket.socket(type=socket.SOCK_DGRAM)), netlink=tried(lambda: socket.socket(16, 3)))
""",
        stranger[0], port,
    )  # fmt: skip
    assert found.pop("own") == "passed"
    assert set(found.values()) == {"EACCES"}, found


def test_a_display_has_sockets_and_shared_memory(box: ProgramBox) -> None:
    """In its own directory; System V memory of others stays as the kernel's permissions make it."""
    box.change_ruleset(sockets=True)
    found = box.run_json(
        """
path = sys.argv[1] + "/display"
def display():
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as viewer:
        server.bind(path); server.listen(); viewer.connect(path)
shmget = {"x86_64": 29, "aarch64": 194}[os.uname().machine]
libc.syscall.restype = ctypes.c_long
key = libc.syscall(ctypes.c_long(shmget), ctypes.c_long(0), ctypes.c_long(4096), ctypes.c_long(0o1600))
shmctl = {"x86_64": 31, "aarch64": 195}[os.uname().machine]
said(display=tried(display), shared=key >= 0, removed=call(shmctl, key, 0, 0))
""",
        box.paths.slot("jupyter"),
    )
    assert found == {"display": "passed", "shared": True, "removed": "passed"}


def test_what_is_known_by_name_cannot_be_listed(box: ProgramBox) -> None:
    """As /tmp is to a display server, whose lock is there."""
    box.change_ruleset(unlisted=("/tmp",))
    found = box.run_json(
        """
temp = sys.argv[1]
said(make=tried(lambda: write(temp + "/.X1-lock")), read=tried(lambda: read(temp + "/.X1-lock")), list=tried(lambda: os.listdir(temp)))
""",
        box.paths.tmp,
    )
    assert found == {"make": "passed", "read": "passed", "list": "EACCES"}


def test_rare_calls_are_refused(box: ProgramBox) -> None:
    """Namespaces, mounts, other processes, System V memory where no display is served."""
    number = {"x86_64": (101, 272, 165, 310, 29), "aarch64": (117, 97, 40, 270, 194)}[
        os.uname().machine
    ]
    found = box.run_json(
        """
ptrace, unshare, mount, read_memory, shmget = map(int, sys.argv[1:])
said(ptrace=call(ptrace, 16, os.getppid(), 0, 0), unshare=call(unshare, 0x10000000), mount=call(mount, 0, 0, 0, 0, 0),
     memory=call(read_memory, os.getppid(), 0, 0, 0, 0, 0), shared=call(shmget, 0, 4096, 0o1600),
     limits=tried(lambda: __import__("resource").prlimit(os.getppid(), 7)))
""",
        *number,
    )
    assert set(found.values()) == {"EPERM"}, found


def test_it_is_the_process_that_supervisord_started(box: ProgramBox) -> None:
    """The pid, the exit code and the end by a signal are the program's own."""
    program = box.start(
        sys.executable, "-I", "-c", "import os; print(os.getpid(), flush=True); os._exit(7)"
    )
    out, _ = program.communicate(timeout=120)
    assert (int(out), program.returncode) == (program.pid, 7)
    program = box.start(
        sys.executable, "-I", "-c", "import signal; print(1, flush=True); signal.pause()"
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "1\n"
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=120)
    assert program.returncode == -signal.SIGTERM


def test_a_new_start_finds_no_temporary_files(box: ProgramBox) -> None:
    """Each has a directory of its own, with an unpredictable name; another program's stays."""
    script = "write(tempfile.gettempdir() + '/x'); said(temp=tempfile.gettempdir(), there=os.listdir(tempfile.gettempdir()))"
    first, second = box.run_json(script), box.run_json(script)
    assert first["there"] == second["there"] == ["x"]
    assert first["temp"] != second["temp"]
    assert sorted(path.name for path in box.paths.tmp.iterdir()) == [
        "comfyui.abc",
        Path(str(second["temp"])).name,
    ]


def test_a_program_without_a_ruleset_is_not_started(box: ProgramBox) -> None:
    """Nor one whose command is missing: one message, and exit 1."""
    for name, command, said in (
        ("editor", "/bin/true", "no ruleset"),
        (NAME, "/no/such", "No such file"),
    ):
        program = box.start(command, name=name)
        _, err = program.communicate(timeout=120)
        assert (program.returncode, said in err, err.count("\n")) == (1, True, 1), err


def test_a_program_of_agentbox_finds_its_secrets_and_its_token(box: ProgramBox) -> None:
    """The mirror gets as far as the API, which is not running: it can read everything that it read
    before."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    box.write_plan(
        plan_of(f"[api]\nport = {port}\n[sovereign_mesh.telegram_mirror]\nenabled = true\n")
    )
    names = ("AGENTBOX_TELEGRAM_TOKEN", "AGENTBOX_TELEGRAM_CHAT")
    for name, value in zip(names, ("1:abc", "-42"), strict=True):
        (box.paths.mounted_secrets / name).write_text(value)
    program = box.start(
        sys.executable, "-I", "-m", "agentbox.box.programs.telegram", *names, name="telegram-mirror"
    )
    _, err = program.communicate(timeout=120)
    assert (program.returncode, "cannot reach" in err) == (8, True), err
    assert (box.paths.starts_dir / "telegram-mirror").exists()


def test_its_rights_are_never_those_of_a_whole_root() -> None:
    """No ruleset of a plan grants the root: the last thing that is tried before a program starts."""
    assert "/" not in {place for row in plan_of(JUPYTER).rulesets.values() for place in row.folders}
    assert Ruleset() == Ruleset(folders=(), reads=(), listens=(), network=False, sockets=False)

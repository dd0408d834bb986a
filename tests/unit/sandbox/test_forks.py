"""The number of processes of a tree, enforced at the call that would create one too many."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.confined_process import EVERYWHERE, run_json

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.spec import AGENT_NICE, Launch

FREE = Confinement(grants=(EVERYWHERE,))
SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)


def test_the_limit_is_exact() -> None:
    """By fork, vfork and clone alike; a child that was waited for frees one, a zombie does not."""
    found = run_json(
        """
import subprocess
pids = []
def fill():
    while True:
        if (pid := os.fork()) == 0: time.sleep(100)
        pids.append(pid)
first = tried(fill)
count = len(pids)
os.kill(pids[0], signal.SIGKILL)
os.waitid(os.P_PID, pids[0], os.WEXITED | os.WNOWAIT)
zombie = tried(fill)
os.waitpid(pids.pop(0), 0)
room = (tried(fill), len(pids))
spawn = tried(lambda: os.posix_spawn("/bin/true", ["true"], {}))
run = tried(lambda: subprocess.run(["/bin/true"]))
for pid in pids: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
free = subprocess.run(["/bin/true"]).returncode
said(first=first, count=count, zombie=zombie, room=room, spawn=spawn, run=run, free=free)
""",
        FREE, pids=12,
    )  # fmt: skip
    assert found == {
        "first": "EAGAIN", "count": 11, "zombie": "EAGAIN", "room": ["EAGAIN", 11], "spawn": "EAGAIN", "run": "EAGAIN", "free": 0,
    }  # fmt: skip


def test_threads_have_eight_times_the_limit() -> None:
    """All threads of the tree together; more than processes may be, and no more than that."""
    found = run_json(
        """
held, made = threading.Event(), []
threading.stack_size(65536)
try:
    while True:
        thread = threading.Thread(target=held.wait); thread.start(); made.append(thread)
except RuntimeError: count = len(made)
held.set()
for thread in made: thread.join()
threading.Thread(target=int).start()
said(count=count)
""",
        FREE, pids=4,
    )  # fmt: skip
    assert found == {"count": 4 * 8 - 1}


def test_many_forkers_at_once_never_pass_it() -> None:
    """Threads and children that fork side by side: whoever counts meanwhile never sees one too many."""
    found = run_json(
        """
def count():
    mine, parents = {os.getpid()}, {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try: rest = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            except OSError: continue
            parents[int(name)] = int(rest[1])
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        mine |= more; grown = bool(more)
    return len(mine)
def fork():
    for _ in range(60):
        try:
            if (pid := os.fork()) == 0:
                try:
                    for _ in range(3):
                        if os.fork() == 0: time.sleep(0.02); os._exit(0)
                except OSError: pass
                time.sleep(0.01); os._exit(0)
            os.waitpid(pid, os.WNOHANG)
        except OSError: time.sleep(0.001)
threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads: thread.start()
most = 0
while any(thread.is_alive() for thread in threads): most = max(most, count())
said(most=most)
""",
        FREE, pids=16,
    )  # fmt: skip
    assert isinstance(found["most"], int)
    assert 8 < found["most"] <= 16


def test_namespaces_stay_refused() -> None:
    """The flags of clone are looked at by the reaper now."""
    script = (
        "said(word=call(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0))"
    )
    assert run_json(script, FREE, pids=10) == {"word": "EPERM"}
    assert run_json(script, FREE) == {"word": "EPERM"}


@pytest.mark.timed
async def test_a_bomb_meets_its_limit_and_a_neighbour_goes_on(tmp_path: Path) -> None:
    """Children that fork forever get EAGAIN forever; nothing has to end them, and another agent
    starts and ends beside it."""
    launcher = LauncherClient()
    base = Launch(
        argv=("true",), env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, cwd=str(tmp_path),
        roots=(str(tmp_path.resolve()),), cpu=1, pids=40, confinement=Confinement(grants=SYSTEM),
    )  # fmt: skip
    heard: list[int] = []
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    try:
        agent = await launcher.spawn(replace(base, argv=("python3", "-I", "-c", bomb)))
        assert (
            os.getpriority(os.PRIO_PROCESS, agent.started.pid)
            - os.getpriority(os.PRIO_PROCESS, agent.started.reaper)
            > 0
        )
        agent.on_denied = lambda denials: heard.append(denials.count)
        begun, most, nice, took = time.monotonic(), 0, 0, []
        while (spent := time.monotonic() - begun) < 3 or (
            spent < 30 and not (most == 40 and nice >= AGENT_NICE and heard)
        ):
            nice = max(nice, os.getpriority(os.PRIO_PROCESS, agent.started.reaper))
            most = max(most, len(tree.descendants(tree.scan(), [agent.started.reaper])))
            start = time.monotonic()
            other = await launcher.spawn(base)
            assert (await other.ended).code == 0
            other.close_descriptors()
            took.append(time.monotonic() - start)
        assert most == 40
        assert nice >= AGENT_NICE  # a flooded reaper is no faster than its agent
        assert sum(heard) > 0
        assert not agent.ended.done()
        assert sorted(took)[len(took) // 2] < 0.5
        agent.end(0)
        async with asyncio.timeout(10):
            await agent.ended
        assert tree.read_process(agent.started.reaper) is None
        agent.close_descriptors()
    finally:
        await launcher.close()


@pytest.mark.parametrize("pids", [0, 16])
def test_threads_of_a_process_share_their_descriptors(pids: int) -> None:
    """One with a table of its own would have open files that no scan of the process finds; its
    process may still close a range."""
    found = run_json(
        """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def asked(number, *arguments):
    done = libc.syscall(number, *arguments)
    return errno.errorcode[ctypes.get_errno()] if done < 0 else "passed"
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
VM, SIGHAND, THREAD = 0x100, 0x800, 0x10000
said(
    unshare=asked(436, 1 << 30, 1 << 30, 2), both=asked(436, 1 << 30, 1 << 30, 6), plain=asked(436, 1 << 30, 1 << 30, 0),
    on_exec=asked(436, 1 << 30, 1 << 30, 4), clone=asked(clone, VM | SIGHAND | THREAD, 0, 0, 0, 0),
)
""",
        FREE, pids=pids,
    )  # fmt: skip
    assert found == {
        "unshare": "EINVAL",
        "both": "EINVAL",
        "plain": "passed",
        "on_exec": "passed",
        "clone": "EPERM",
    }

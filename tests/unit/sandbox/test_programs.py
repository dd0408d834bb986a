"""Programs of one sandbox: one reaper, one tree, a filter for each program."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.confinements import SYSTEM
from support.launched import below, over, read_all

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.launcher.program_client import ProgramProcess
from agentbox.sandbox.spec import Launch

PYTHON = "/usr/bin/python3"
SERVE = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        with server.accept()[0] as one: one.sendall(b"hello")
"""
CONNECT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as one: print(one.recv(9).decode())
"""


@pytest.fixture
async def launcher() -> AsyncIterator[LauncherClient]:
    made = LauncherClient()
    yield made
    await made.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Of a sandbox whose processes may do what confined ones may."""
    return Launch(
        argv=(), env={"PATH": "/usr/bin:/bin"}, cwd=str(tmp_path), roots=(str(tmp_path.resolve()),), pids=64,
        confinement=Confinement(grants=(*SYSTEM, PathRule("/dev/null", "rw"), PathRule(str(tmp_path), "rlwmxd"))),
    )  # fmt: skip


@pytest.fixture
async def sandbox(launcher: LauncherClient, launch: Launch) -> AsyncIterator[AgentProcess]:
    opened = await launcher.spawn(launch)
    yield opened
    opened.end(0)
    await over(opened)


def programs_of(sandbox: AgentProcess) -> list[int]:
    """Its processes but the reaper and the one that waits for a program, which looks like it."""
    reaper = Path(f"/proc/{sandbox.started.reaper}/cmdline").read_bytes()
    found = []
    for pid in below(sandbox.started.reaper):
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{pid}/cmdline").read_bytes() != reaper:
                found.append(pid)
    return found


async def code_of(program: ProgramProcess) -> int | None:
    async with asyncio.timeout(10):
        ended = await program.ended
    program.forget()
    return ended.code if ended.signal is None else -ended.signal


async def output(sandbox: AgentProcess, launch: Launch, *argv: str) -> str:
    """What a program prints that succeeds."""
    program = await sandbox.start_program(replace(launch, argv=argv))
    printed = (await read_all(program.stdout)).decode()
    assert await code_of(program) == 0, await read_all(program.stderr)
    return printed.strip()


async def test_programs_run_one_after_another(sandbox: AgentProcess, launch: Launch) -> None:
    """Each has its own exit and output, is a child of the one reaper, and is confined as an agent
    is."""
    reapers = {await output(sandbox, launch, "sh", "-c", "echo $PPID") for _ in range(3)}
    assert reapers == {str(sandbox.started.reaper)}
    program = await sandbox.start_program(replace(launch, argv=("sh", "-c", "exit 7")))
    assert program.measured["held"]["sockets"]
    assert await code_of(program) == 7


async def test_a_program_that_does_not_exist(sandbox: AgentProcess, launch: Launch) -> None:
    """The start fails with its stage, and the next one works."""
    with pytest.raises(SpawnFailed) as caught:
        await sandbox.start_program(replace(launch, argv=("no-such-program",)))
    assert (caught.value.stage, caught.value.errno) == ("exec", 2)
    assert await output(sandbox, launch, "echo", "on") == "on"


async def test_programs_run_side_by_side(sandbox: AgentProcess, launch: Launch) -> None:
    """The reaper answers the calls of all: each forks, while a server of one is reached by the
    others and by none of another sandbox."""
    server = await sandbox.start_program(replace(launch, argv=(PYTHON, "-c", SERVE)))
    port = (await asyncio.to_thread(os.read, server.stdout, 9)).decode().strip()
    answers = await asyncio.gather(
        *(output(sandbox, launch, PYTHON, "-c", CONNECT, port) for _ in range(4)),
        *(output(sandbox, launch, "sh", "-c", "true | true | echo hello") for _ in range(4)),
    )
    assert set(answers) == {"hello"}
    server.signal(signal.SIGKILL)
    assert await code_of(server) == -signal.SIGKILL


async def test_another_sandbox_does_not_reach_a_server(
    launcher: LauncherClient, sandbox: AgentProcess, launch: Launch
) -> None:
    """Its reaper knows only listeners of its own tree."""
    server = await sandbox.start_program(replace(launch, argv=(PYTHON, "-c", SERVE)))
    port = (await asyncio.to_thread(os.read, server.stdout, 9)).decode().strip()
    other = await launcher.spawn(launch)
    refused = await other.start_program(replace(launch, argv=(PYTHON, "-c", CONNECT, port)))
    assert await code_of(refused) == 1
    assert b"Permission denied" in await read_all(refused.stderr)
    other.end(0)
    await over(other)


async def test_processes_count_over_all_programs(launcher: LauncherClient, launch: Launch) -> None:
    """At the limit no program is started, and none can fork; afterwards both work again."""
    few = replace(launch, pids=3)
    sandbox = await launcher.spawn(few)
    sleeping = [await sandbox.start_program(replace(few, argv=("sleep", "99"))) for _ in range(3)]
    with pytest.raises(SpawnFailed, match="at the limit of 3"):
        await sandbox.start_program(replace(few, argv=("true",)))
    sleeping[0].signal(signal.SIGKILL)
    await code_of(sleeping[0])
    forking = await sandbox.start_program(replace(few, argv=("sh", "-c", "(true); true")))
    assert await read_all(forking.stderr) == b"sh: 1: Cannot fork\n"
    await code_of(forking)
    assert await output(sandbox, few, "echo", "on") == "on"
    sandbox.end(0)
    await over(sandbox)


async def test_a_program_signals_no_other_and_has_no_pipe_of_it(
    sandbox: AgentProcess, launch: Launch
) -> None:
    """Each has a Landlock domain of its own."""
    other = await sandbox.start_program(replace(launch, argv=("sleep", "99")))
    tried = f"kill -0 {other.pid} 2>/dev/null || echo no signal; cat /proc/{other.pid}/fd/1 2>/dev/null || echo no pipe"
    assert (await output(sandbox, launch, "sh", "-c", tried)).splitlines() == [
        "no signal",
        "no pipe",
    ]
    other.signal(signal.SIGKILL)
    await code_of(other)


async def test_the_end_of_one_program(sandbox: AgentProcess, launch: Launch) -> None:
    """TERM, then KILL for what ignores it, double-forked processes of its session included; what
    another program runs stays."""
    stays = await sandbox.start_program(replace(launch, argv=("sleep", "99")))
    stubborn = "trap '' TERM; (sleep 1000 &); (sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' &); echo up; sleep 1000; sleep 1000"
    program = await sandbox.start_program(replace(launch, argv=("sh", "-c", stubborn)))
    await asyncio.to_thread(os.read, program.stdout, 3)
    program.end(0.1)
    assert await code_of(program) == -signal.SIGKILL
    await wait_until(
        lambda: programs_of(sandbox) == [stays.pid],
        "only the other program is left",
    )


async def test_a_host_that_gives_a_program_up_ends_it(
    sandbox: AgentProcess, launch: Launch
) -> None:
    """Its control socket closes."""
    program = await sandbox.start_program(replace(launch, argv=("sleep", "99")))
    program.forget()
    await wait_until(lambda: programs_of(sandbox) == [], "it is gone")


async def test_nothing_outlives_the_sandbox(launcher: LauncherClient, launch: Launch) -> None:
    """A program that ignores TERM, and a daemon in a session of its own, end with it."""
    sandbox = await launcher.spawn(launch)
    hostile = "trap '' TERM HUP; (setsid sh -c \"trap '' TERM; sleep 1000; sleep 1000\" &); echo up; sleep 1000; sleep 1000"
    program = await sandbox.start_program(replace(launch, argv=("sh", "-c", hostile)))
    await asyncio.to_thread(os.read, program.stdout, 3)
    reaper = sandbox.started.reaper
    sandbox.end(0.2)
    assert await over(sandbox) == (0, None, "")
    assert below(reaper) == []
    assert (await program.ended).code is None
    with pytest.raises(SpawnFailed) as caught:
        await sandbox.start_program(replace(launch, argv=("true",)))
    assert caught.value.stage == "sandbox"


@pytest.mark.limit("sandbox_seconds")
async def test_the_time_of_a_sandbox(launcher: LauncherClient, launch: Launch) -> None:
    """The reaper itself ends it."""
    sandbox = await launcher.spawn(replace(launch, wall_seconds=0.3, grace_seconds=0.1))
    await sandbox.start_program(replace(launch, argv=("sleep", "99")))
    assert await over(sandbox) == (0, None, "timeout")

"""RC-028: the box survives its agents: forks, memory, CPU, output and descriptors without end, each alone.

Columns D and H. While an agent does its worst, `/livez` answers four clients of 200 requests a second with p99 within 30 ms,
and another agent, asked over its pipes, answers with p95 within 60 ms (the first byte of an agent). The best of
three short runs counts, so that another load of the machine does not. Afterwards every program of the box and the other
agent are the processes that they were.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from harness.agents import client_of, python_spec
from harness.benches import keep, livez
from harness.box import Box
from harness.outcomes import API_PORT
from harness.waiting import wait_for

from agentbox.client import AsyncBoxClient

RUNS, SECONDS, ECHOES = 3, 2.0, 60
LIVEZ_MS, NEIGHBOUR_MS = 30.0, 60.0
MIB = 1 << 20
PROGRAMS = ("management-api", "gateway", "agent-host")
ECHO = """
import os
while data := os.read(0, 65536):
    os.write(1, data)
"""
# The pipe is a fuse: each process costs one of its bytes, so that a box that enforces no limit does not exhaust this host.
FORKS = """
import os
os.write(2, b"begun")
fuse, more = os.pipe()
os.set_blocking(fuse, False)
os.write(more, bytes(500))
while True:
    try:
        os.read(fuse, 1)
    except BlockingIOError:
        os._exit(0)
    try:
        os.fork()
    except OSError:
        os.write(more, b"x")
"""
MEMORY = """
import os
os.write(2, b"begun")
kept = []
while True:
    try:
        kept.append(bytearray(b"x") * (4 << 20))
    except MemoryError:
        pass
"""
CPU = """
import os
os.write(2, b"begun")
for _ in range(3):
    os.fork()
while True:
    pass
"""
OUTPUT = """
import os
os.write(2, b"begun")
while True:
    os.write(1, bytes(1 << 16))
"""
DESCRIPTORS = """
import os
os.write(2, b"begun")
kept = []
while True:
    try:
        kept += os.pipe()
    except OSError:
        os.close(kept.pop())
"""
# As many processes of eight threads as it gets; like FORKS with a fuse.
THREADS = """
import os, threading
os.write(2, b"begun")
threading.stack_size(65536)
over = threading.Event()
def eight():
    for _ in range(7):
        try:
            threading.Thread(target=over.wait, daemon=True).start()
        except RuntimeError:
            pass
for _ in range(400):
    try:
        if os.fork() == 0:
            eight()
            over.wait()
    except OSError:
        over.wait(0.01)
eight()
over.wait()
"""
FLOODS: dict[str, tuple[str, dict[str, Any]]] = {
    "forks": (FORKS, {"pids": 64}),
    "memory": (MEMORY, {"memory": 256 * MIB}),
    "cpu": (CPU, {}),
    "output": (OUTPUT, {"stdout": MIB}),
    "descriptors": (DESCRIPTORS, {"fds": 128}),
}


def of_its_own(box: Box) -> dict[str, int]:
    """Pids of the programs of the box."""
    return {name: box.program_pid(name) for name in PROGRAMS}


async def answers(token: str, agent_id: str, generation: int) -> list[float]:
    """Milliseconds from a line that is sent to an agent to its answer."""
    samples = []
    async with (
        AsyncBoxClient(f"http://127.0.0.1:{API_PORT}", token=token) as client,
        client.agents.attach(agent_id, generation) as pipes,
    ):
        chunks = aiter(pipes)
        for number in range(ECHOES):
            line, heard = b"%d\n" % number, b""
            began = time.perf_counter()
            await pipes.send(line)
            while heard != line:
                heard += await anext(chunks)
            samples.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.01)
    return samples


def worst(samples: list[float], share: float) -> float:
    """The largest of the fastest `share`."""
    return sorted(samples)[int(share * len(samples)) - 1]


@pytest.mark.timed
@pytest.mark.parametrize("flood", FLOODS)
def test_rc_028(loaded: Box, flood: str) -> None:
    """One flood at a time; nothing else runs beside it."""
    survives(loaded, flood)


@pytest.mark.timed
def test_rc_028_two_agents_of_the_default_limits(loaded: Box) -> None:
    """Each creates as many processes of eight threads as it may: `/livez` is within its bound, and
    `agent stop` works."""
    before, programs = loaded.wait_ready(), of_its_own(loaded)
    with client_of(loaded) as client:

        def measured() -> tuple[list[float], list[float]]:
            hogs = [
                client.agents.spawn(python_spec(loaded, THREADS, name=f"flood-{side}"))
                for side in ("a", "b")
            ]
            try:
                for hog in hogs:
                    wait_for(
                        lambda hog=hog: _has_begun(client, hog.agent_id), 10, "the flood has begun"
                    )
                wait_for(
                    lambda: _were_denied(client, hogs), 20, "they meet what all agents may have"
                )
                return livez(
                    f"http://127.0.0.1:{API_PORT}", SECONDS, loaded.folder / "livez.json"
                ), []
            finally:
                for hog in hogs:
                    client.agents.terminate(hog.agent_id, hog.generation, grace_s=0)
                    wait_for(
                        lambda hog=hog: client.agents.get(hog.agent_id).exit,
                        10,
                        "the flood is over",
                    )

        probes, _neighbour = best_of(measured, RUNS)
    keep(
        f"flood-two-agents-livez-{loaded.engine}",
        "/livez, the fastest 99 %",
        "ms",
        probes,
        LIVEZ_MS,
    )
    assert of_its_own(loaded) == programs
    assert loaded.wait_ready()["boot_id"] == before["boot_id"]
    assert min(worst(run, 0.99) for run in probes) <= LIVEZ_MS, "the API is kept waiting"


def survives(box: Box, flood: str, *, runs: int = RUNS, kept_as: str = "flood") -> None:
    """The predicate. `kept_as` is the beginning of the names under which the raw numbers are
    stored."""
    code, limits = FLOODS[flood]
    before, programs, token = box.wait_ready(), of_its_own(box), box.token()
    with client_of(box) as client:
        other = client.agents.spawn(python_spec(box, ECHO, name="neighbour", stdin="pipe"))
        pid = client.agents.get(other.agent_id).pid

        def measured() -> tuple[list[float], list[float]]:
            hog = client.agents.spawn(python_spec(box, code, name=f"flood-{flood}", limits=limits))
            try:
                wait_for(lambda: _has_begun(client, hog.agent_id), 10, "the flood has begun")
                told = asyncio.run(answers(token, other.agent_id, other.generation))
                return livez(
                    f"http://127.0.0.1:{API_PORT}", SECONDS, box.folder / "livez.json"
                ), told
            finally:
                client.agents.terminate(hog.agent_id, hog.generation, grace_s=0)
                wait_for(lambda: client.agents.get(hog.agent_id).exit, 10, "the flood is over")

        probes, neighbour = best_of(measured, runs)
        keep(
            f"{kept_as}-{flood}-livez-{box.engine}",
            "/livez, the fastest 99 %",
            "ms",
            probes,
            LIVEZ_MS,
        )
        keep(
            f"{kept_as}-{flood}-neighbour-{box.engine}",
            "an agent's answer",
            "ms",
            neighbour,
            NEIGHBOUR_MS,
        )
        now = client.agents.get(other.agent_id)
        assert (now.state, now.pid, now.restarts) == ("running", pid, 0)
        client.agents.terminate(other.agent_id, other.generation, grace_s=0)
    assert of_its_own(box) == programs
    assert box.wait_ready()["boot_id"] == before["boot_id"]
    assert min(worst(run, 0.95) for run in neighbour) <= NEIGHBOUR_MS, (
        "another agent is kept waiting"
    )
    assert min(worst(run, 0.99) for run in probes) <= LIVEZ_MS, "the API is kept waiting"


def best_of(
    measured: Callable[[], tuple[list[float], list[float]]], runs: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Measures until both are within their bounds, `runs` times at most."""
    probes: list[list[float]] = []
    neighbour: list[list[float]] = []
    while len(probes) < runs:
        one, two = measured()
        probes.append(one)
        neighbour.append(two)
        if worst(one, 0.99) <= LIVEZ_MS and (not two or worst(two, 0.95) <= NEIGHBOUR_MS):
            break
    return probes, neighbour


def _were_denied(client: Any, hogs: list[Any]) -> bool:
    """Whether one of them requested a task more than all agents of the box may have."""
    return any(
        event["data"]["rule"] == "box_tasks"
        for hog in hogs
        for event in client.call(
            "read_events", query={"limit": 100, "types": "policy.denied", "agent_id": hog.agent_id}
        )["events"]
    )


def _has_begun(client: Any, agent_id: str) -> bool:
    return any(
        b"begun" in one.data
        for one in client.agents.stream(agent_id, follow=False)
        if one.kind == "stderr"
    )

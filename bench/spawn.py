"""Spawn of /bin/true: through the sandbox, through agent-host, beside plain fork and exec, bubblewrap and sandlock; memory of
an idle agent.

`python bench/spawn.py [--count N] [--sandlock PYTHON] [--before PYTHON]`. A spawn counts from the call to the answer that exec has succeeded; fork and exec
and the two other sandboxes to the exit of the program, which is a little more. Samples alternate, so that all meet the same load.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import sandbox_peers
from agentbox_testkit.wait import wait_until
from measure import Claim, write_results
from support.agent_host import AgentHostBox
from support.host_configs import host_config

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.agents.admission.admit import UNCOUNTED, Requester, admit
from agentbox.agents.admission.draft import AdmissionInputs
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs.confinement import PathVariables, build_confinement
from agentbox.contracts.orchestrator import DEFAULT, AgentSpec, Orchestrator
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.spec import Launch

_TRUE = "/bin/true"
_WARM_UPS = 20
_PIDS = 128  # what a manifest gives an agent by default, and the peer has too
_REHEARSED = 0.5  # seconds
_IDLE = 20  # agents that sleep while their memory is counted
_KIB = 1024


def fork_and_exec() -> None:
    """The peer: as plain as the kernel allows."""
    os.waitpid(os.posix_spawn(_TRUE, [_TRUE], {}), 0)


async def in_sandbox(launcher: LauncherClient, confinement: Confinement) -> None:
    """One agent of the sandbox module alone, confined as the default profile confines."""
    agent = await launcher.spawn(
        Launch(
            argv=(_TRUE,), env={}, cwd="/tmp", roots=("/tmp",), pids=_PIDS, confinement=confinement
        )
    )
    agent.close_descriptors()


async def through_host(adapter: Orchestrator, number: int) -> None:
    """One agent of the slot: limits, row, record and stream included."""
    await adapter.spawn(
        AgentSpec(name="true", argv=(_TRUE,), profile="sandboxed"), request_id=f"bench-{number}"
    )


def started_by(python: Path) -> LauncherClient:
    """The launcher of another checkout, whose interpreter that is."""
    launcher, ours = LauncherClient(), sys.executable
    sys.executable = str(python)
    try:
        launcher.start()
    finally:
        sys.executable = ours
    return launcher


async def latencies(
    launcher: LauncherClient,
    adapter: Orchestrator,
    paths: Paths,
    count: int,
    before: LauncherClient | None,
) -> tuple[list[float], ...]:
    """Milliseconds of each kind, warm-ups left out; the last is of `before`, or nothing."""
    confinement = sandboxed(paths)
    wrapped = sandbox_peers.bubblewrap([_TRUE])
    found: tuple[list[float], ...] = ([], [], [], [], [])
    for number in range(_WARM_UPS + count):
        marks = [time.perf_counter()]
        fork_and_exec()
        marks.append(time.perf_counter())
        await in_sandbox(launcher, confinement)
        marks.append(time.perf_counter())
        await through_host(adapter, number)
        marks.append(time.perf_counter())
        if wrapped is not None:
            sandbox_peers.spawn_of(wrapped)
        marks.append(time.perf_counter())
        if before is not None:
            await in_sandbox(before, confinement)
        marks.append(time.perf_counter())
        for samples, start, end in zip(found, marks, marks[1:], strict=False):
            samples.append((end - start) * 1000)
        await asyncio.sleep(0.02)  # the ends of the three are no part of the next start
    return tuple(samples[_WARM_UPS:] for samples in found)


def sandboxed(paths: Paths) -> Confinement:
    """What the default profile tells the kernel."""
    config, spec = (
        host_config(paths),
        AgentSpec(name="true", argv=(_TRUE,), profile="sandboxed"),
    )
    entry = AgentRecord(
        agent_id="bench",
        spec=spec,
        limits=DEFAULT,
        principal="",
        request_id="",
        grant_set=admit(
            spec,
            Requester(principal="", request_id=""),
            AdmissionInputs(config=config, now=0),
            UNCOUNTED,
        ).grant_set,
    )
    return build_confinement(
        entry, config, PathVariables(workspace=paths.workspace, private=(), program=_TRUE)
    )


def memory(pid: int) -> int:
    """Proportional bytes of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return next(
        int(line.split()[1]) * _KIB for line in text.splitlines() if line.startswith("Pss:")
    )


def control_plane(root: int, agents: set[int]) -> int:
    """Bytes of agent-host, launcher and reapers; the agents' own processes left out."""
    return memory(root) + sum(
        memory(row.pid) for row in tree.descendants(tree.scan(), [root]) if row.pid not in agents
    )


async def idle_cost(adapter: Orchestrator, root: int) -> float:
    """MiB of control plane that one idle agent adds, from the difference that many make."""
    first = control_plane(root, set())
    spec = AgentSpec(name="idle", argv=("sleep", "1000"), profile="sandboxed")
    handles = [await adapter.spawn(spec, request_id=f"idle-{number}") for number in range(_IDLE)]
    pids = {(await adapter.get(handle.agent_id)).pid or 0 for handle in handles}
    grown = control_plane(root, pids) - first
    for handle in handles:
        await adapter.terminate(handle)
    return grown / _IDLE / _KIB / _KIB


async def waiting_cost() -> float:
    """MiB that a keeper and the process it has forked ahead add to a launcher of which no agent was asked."""
    launcher = LauncherClient()
    launcher.start()
    root = launcher.pid or 0
    await wait_until(lambda: len(tree.descendants(tree.scan(), [root])) == 2, "a pair waits")
    await asyncio.sleep(_REHEARSED)
    pair = tree.descendants(tree.scan(), [root])
    grown = memory(root) + sum(memory(row.pid) for row in pair)
    os.kill(root, signal.SIGSTOP)  # or it makes the next pair at once
    tree.signal_processes(pair, signal.SIGKILL)
    await wait_until(
        lambda: all(row.state == "Z" for row in tree.descendants(tree.scan(), [root])), "it is gone"
    )
    grown -= memory(root)
    os.kill(root, signal.SIGCONT)
    await launcher.close()
    return grown / _KIB / _KIB


async def run(count: int, python: Path | None, older: Path | None) -> None:
    """Measures and keeps the claims."""
    with tempfile.TemporaryDirectory() as folder:
        box = AgentHostBox(Path(folder))
        box.start()
        adapter, launcher = (
            LocalProcessOrchestrator(box.slot_config(), Deps(metrics=Metrics())),
            LauncherClient(),
        )
        before = started_by(older) if older else None
        try:
            await adapter.open(Deadline.after(5))
            plain, sandbox, host, wrapped, earlier = await latencies(
                launcher, adapter, box.paths, count, before
            )
            cost, waiting = await idle_cost(adapter, box.pid), await waiting_cost()
        finally:
            for one in (launcher, before) if before else (launcher,):
                await one.close()
            await adapter.close()
            box.stop()
    locked = sandbox_peers.sandlock(python, [_TRUE], count, _WARM_UPS)
    peers = [("bubblewrap of /bin/true", wrapped if sandbox_peers.bubblewrap([_TRUE]) else [])]
    peers.append(("sandlock of /bin/true", locked[0] if locked else []))
    peers.append(("sandbox spawn of /bin/true, before", earlier if before else []))
    others = [
        Claim(name, "ms", samples, conditions="to exec" if "before" in name else "to its exit")
        for name, samples in peers
        if samples
    ]
    write_results(
        "spawn",
        [
            *others,
            Claim("fork and exec of /bin/true", "ms", plain, conditions="to its exit"),
            Claim("sandbox spawn of /bin/true", "ms", sandbox, 4.5, "to exec, confined as sandboxed", "sandlock of /bin/true" if locked else "fork and exec of /bin/true"),
            Claim("agent spawn of /bin/true", "ms", host, 200, "to the slot's answer", "fork and exec of /bin/true"),
            Claim("memory of an idle agent in the control plane", "MiB", [cost], 3, f"PSS, mean of {_IDLE}, reaper included"),
            Claim("memory of the keeper that waits", "MiB", [waiting], None, "PSS, with the process that it has forked, beyond the launcher alone"),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", "--count", dest="count", type=int, default=300)
    parser.add_argument("--sandlock", type=Path, help="an interpreter that has sandlock")
    parser.add_argument(
        "--before",
        type=Path,
        help="the interpreter of another checkout, whose sandbox is measured in turn",
    )
    given = parser.parse_args()
    asyncio.run(run(given.count, given.sandlock, given.before))

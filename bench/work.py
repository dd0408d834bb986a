"""Work that makes many system calls, inside an agent's sandbox, beside the same without one, in bubblewrap and in sandlock.

`python bench/work.py [--runs N] [--quick] [--cpus N] [--folder PLACE] [--sandlock PYTHON]`. `git status` in a repository of 10,000 files, a
pytest run of 100 tests, and `pip install` of a wheel of 300 files. One small program a kind lives for the whole bench and does the work when
it is told, so no start of a sandbox and no copy of the workspace counts, and the kinds take turns sample by sample.

An agent is run on as many CPUs as its limit says, at nice 10, and its session is behind others where the kernel groups by session. "plain" and
the peers get the same CPUs, nice value and weight of the session (but sandlock, of the last): that is what the goal is measured by. "plain, unbounded" has every CPU at nice 0, which is what the limit costs and not the sandbox. Each kind has a temporary
folder of its own on one file system, and removes nothing before the end: an ext4 without a journal passes over each inode that was
freed in the last minutes, one by one. "processor" is the time of all processes, the reaper's included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import sandbox_peers
from measure import Claim, write_results
from support.agent_host import MIB, AgentHostBox

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7

FILES, TESTS, MODULES = 10_000, 100, 300
WORSE = 1.2  # times plain, at most
_WORKER = """
import json, os, resource, subprocess, sys, tempfile, time
def used():
    rows = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rows.ru_utime + rows.ru_stime
def once(argv):
    folder = tempfile.mkdtemp()
    argv = [word.replace("@", folder) for word in argv]
    before, began = used(), time.perf_counter()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wall, processor = (time.perf_counter() - began) * 1000, (used() - before) * 1000
    return {"wall": wall, "processor": processor, "failed": done.returncode and done.stdout.decode()[-500:]}
if sys.argv[1:]:
    print(json.dumps([once(sys.argv[2:]) for _ in range(int(sys.argv[1]))]))
else:
    print(json.dumps({"cpus": sorted(os.sched_getaffinity(0)), "nice": os.nice(0)}), flush=True)
    for line in sys.stdin: print(json.dumps(once(json.loads(line))), flush=True)
"""
_PROGRAM = ["/usr/bin/python3", "-I", "-c", _WORKER]
Ask = Callable[[bytes], Awaitable[bytes]]
Sample = tuple[float, float]  # milliseconds of wall and of processor


def works(workspace: Path) -> dict[str, list[str]]:
    """Makes what the three need, and returns their command lines, to be run in the workspace or an agent's copy of it. `@` is a
    new folder of each run."""
    repository, suite, wheel = (
        workspace,
        workspace / "suite",
        workspace / "many-1.0-py3-none-any.whl",
    )
    for number in range(FILES):
        path = repository / f"d{number % 100}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", repository, *words], check=True)
    suite.mkdir()
    for number in range(20):
        lines = [
            f"def test_{at}(tmp_path): (tmp_path / 'x').write_text('{at}')"
            for at in range(TESTS // 20)
        ]
        (suite / f"test_{number}.py").write_text("\n".join(lines))
    with zipfile.ZipFile(wheel, "w") as made:
        for number in range(MODULES):
            made.writestr(f"many/m{number}.py", f"X = {number}\n")
        made.writestr(
            "many-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: many\nVersion: 1.0\n"
        )
        made.writestr("many-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        made.writestr("many-1.0.dist-info/RECORD", "")
    python = [sys.executable, "-B", "-m"]
    return {
        f"git status of {FILES} files": ["git", "status", "--porcelain"],
        f"pytest of {TESTS} tests": [*python, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "suite", "--basetemp", "@/t", "suite"],
        f"pip install of a wheel of {MODULES} files": [*python, "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--target", "@/p", wheel.name],
    }  # fmt: skip


@asynccontextmanager
async def process(
    argv: list[str], env: Mapping[str, str], cwd: Path
) -> AsyncIterator[tuple[Ask, int]]:
    """A worker outside of any agent, in a session of its own, and its number; its greeting is read."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *argv, *_PROGRAM, env=env, cwd=cwd, stdin=pipe, stdout=pipe, start_new_session=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    reading, writing = child.stdout, child.stdin

    async def ask(line: bytes) -> bytes:
        writing.write(line)
        return await reading.readline()

    await reading.readline()
    try:
        yield ask, child.pid
    finally:
        writing.close()
        await child.wait()


@asynccontextmanager
async def agent(
    adapter: LocalProcessOrchestrator,
) -> AsyncIterator[tuple[Ask, dict[str, Any], int]]:
    """A worker as an agent of the default profile, its greeting, and its number."""
    spec = AgentSpec(name="work", argv=tuple(_PROGRAM), profile="sandboxed", stdin="pipe")
    handle = await adapter.spawn(spec, request_id=uuid7())
    pipes = await adapter.attach(handle)
    chunks, kept = aiter(pipes), bytearray()

    async def ask(line: bytes) -> bytes:
        if line:
            await pipes.send(line)
        while b"\n" not in kept:
            kept.extend(await anext(chunks))
        found, _, rest = bytes(kept).partition(b"\n")
        kept[:] = rest
        return found

    greeting = json.loads(await ask(b""))
    try:
        yield ask, greeting, (await adapter.get(handle.agent_id)).pid or 0
    finally:
        await pipes.aclose()
        await adapter.terminate(handle, grace_s=0)


def parent_of(pid: int) -> int:
    """The reaper of an agent."""
    return int(
        Path(f"/proc/{pid}/status").read_text(encoding="ascii").partition("PPid:")[2].split()[0]
    )


def weigh_as(pid: int, others: Iterable[int]) -> None:
    """Gives the sessions of those the weight of that one's, sched(7); nothing where the kernel has no such groups."""
    if (file := Path(f"/proc/{pid}/autogroup")).exists():
        weight = file.read_text(encoding="ascii").split()[-1]
        for other in others:
            Path(f"/proc/{other}/autogroup").write_text(weight, encoding="ascii")


def on_processor(pid: int) -> float:
    """Milliseconds that a process has run: its first thread, proc(5) schedstat."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6


async def sample(ask: Ask, argv: list[str], reaper: int = 0) -> Sample:
    """One turn. Raises RuntimeError with the last words of work that fails."""
    before = on_processor(reaper) if reaper else 0.0
    found = json.loads(await ask(json.dumps(argv).encode() + b"\n"))
    if found["failed"]:
        raise RuntimeError(found["failed"])
    return found["wall"], found["processor"] + (on_processor(reaper) - before if reaper else 0.0)


async def measure(box: AgentHostBox, folder: Path, runs: int, python: Path | None) -> list[Claim]:
    """All kinds of all three; the first turn of each is not counted."""
    adapter = LocalProcessOrchestrator(box.slot_config(), Deps(metrics=Metrics()))
    await adapter.open(Deadline.after(5))
    workspace, claims = box.paths.workspace, list[Claim]()
    todo = works(workspace)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(adapter.close)
        inside, greeting, pid = await opened.enter_async_context(agent(adapter))
        bounds = [
            "taskset",
            "-c",
            ",".join(map(str, greeting["cpus"])),
            "nice",
            "-n",
            str(greeting["nice"]),
        ]
        temps = {name: folder / name for name in ("plain", "unbounded", "bubblewrap", "sandlock")}
        for temp in temps.values():
            temp.mkdir()
        starts = {"plain": bounds, "plain, unbounded": ["env"]}
        if (
            wrapped := sandbox_peers.bubblewrap(
                [], writable=[str(temps["bubblewrap"]), str(workspace)]
            )
        ) is not None:
            starts["bubblewrap"] = [*bounds, *wrapped]
        asks, numbers, reaper = dict[str, Ask](), list[int](), parent_of(pid)
        for name, argv in starts.items():
            asks[name], number = await opened.enter_async_context(
                process(argv, _env(temps[name.split()[-1]]), workspace)
            )
            numbers += [] if name == "plain, unbounded" else [number]
        held = f"sandboxed, {len(greeting['cpus'])} of {os.cpu_count()} CPUs, nice {greeting['nice']}, as plain; at most {WORSE:g} times plain"
        for what, argv in todo.items():
            found: dict[str, list[Sample]] = {name: [] for name in (*asks, "agent")}
            for _ in range(runs + 1):
                weigh_as(pid, numbers)
                for name, ask in asks.items():
                    found[name].append(await sample(ask, argv))
                found["agent"].append(await sample(inside, argv, reaper))
            if locked := _locked(argv, runs, python, bounds, workspace, temps["sandlock"]):
                found["sandlock"] = locked
            claims += _claims(what, {name: samples[1:] for name, samples in found.items()}, held)
    return claims


def _claims(what: str, found: Mapping[str, list[Sample]], held: str) -> list[Claim]:
    claims = []
    for at, suffix in enumerate(("", ", processor")):
        for name, samples in found.items():
            peer = "" if name == "plain" else f"{what}, plain{suffix}"
            claims.append(
                Claim(
                    f"{what}, {name}{suffix}",
                    "ms",
                    [one[at] for one in samples],
                    None,
                    held if name == "agent" else "",
                    peer,
                )
            )
    return claims


def _env(temp: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(temp), "TMPDIR": str(temp), "LANG": "C.UTF-8"}


def _locked(
    argv: list[str], runs: int, python: Path | None, bounds: list[str], cwd: Path, temp: Path
) -> list[Sample]:
    """In one start of sandlock; empty where there is none."""
    words = [*bounds, *_PROGRAM, str(runs + 1), *argv]
    found = sandbox_peers.sandlock(
        python, words, 1, 0, [str(temp), str(cwd), "/dev/null"], cwd, _env(temp)
    )
    return [(one["wall"], one["processor"]) for one in json.loads(found[1])] if found else []


def main() -> int:
    """Exit 1 when an agent's median is beyond 1.2 times the plain one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="2 runs")
    parser.add_argument(
        "--cpus", type=float, default=1.0, help="the agent's limit, which a box has at 1"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("/var/tmp"),
        help="where box, workspace and temporary folders are",
    )
    parser.add_argument("--sandlock", type=Path, help="an interpreter that has sandlock")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="abx-work-") as folder:
        (place := Path(folder) / "box").mkdir()
        box = AgentHostBox(place, limits={"cpu": given.cpus, "tmp": 1024 * MIB})
        box.start()
        try:
            claims = asyncio.run(
                measure(box, Path(folder), 2 if given.quick else given.runs, given.sandlock)
            )
        finally:
            box.stop()
    target = write_results("work", claims, given.out)
    rows = json.loads(target.read_text())["claims"]
    slow = [
        row for row in rows if row["name"].endswith(", agent") and row["times_the_peer"] > WORSE
    ]
    for row in slow:
        print(
            f"{row['name']}: {row['times_the_peer']:g} times plain, must be {WORSE:g}",
            file=sys.stderr,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

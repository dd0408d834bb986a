"""Work that makes many system calls, inside an agent's sandbox, beside the same without one, in bubblewrap and in sandlock.

`python bench/work.py [--runs N] [--quick] [--sandlock PYTHON]`. `git status` in a repository of 10,000 files, a pytest run of 100
tests, and `pip install` of a wheel of 300 files. Each is timed from within, by the same few lines, so that no start of a sandbox counts;
the kinds take turns, and the agent has as many CPUs as the others.
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
from collections.abc import Mapping
from pathlib import Path

import sandbox_peers
from measure import Claim, keep

from agentbox.adapters.base import Deps, SlotConfig
from agentbox.adapters.deadline import Deadline
from agentbox.adapters.metrics import Metrics
from agentbox.adapters.orchestrator.contract import AgentSpec
from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.ids import uuid7
from agentbox.testing.agent_host import AgentHostBox

FILES, TESTS, MODULES = 10_000, 100, 300
WORSE = 1.2  # times plain, at most
_TIMED = """
import os, shutil, subprocess, sys, tempfile, time
folder = tempfile.mkdtemp()
argv = [word.replace("@", folder) for word in sys.argv[1:]]
for _ in range(2):  # the first brings what an agent's own copy of the files lacks: git's index of them, caches
    shutil.rmtree(folder)
    os.mkdir(folder)
    began = time.perf_counter()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    took = (time.perf_counter() - began) * 1000
    if done.returncode: sys.exit(done.stdout.decode())
shutil.rmtree(folder)
print(took)
"""


def works(workspace: Path) -> dict[str, list[str]]:
    """Makes what the three need, and returns their command lines, to be run in the workspace or an agent's copy of it. `@` is a
    new folder of each run."""
    repository, suite, wheel = workspace, workspace / "suite", workspace / "many-1.0-py3-none-any.whl"
    for number in range(FILES):
        path = repository / f"d{number % 100}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", repository, *words], check=True)
    suite.mkdir()
    for number in range(20):
        lines = [f"def test_{at}(tmp_path): (tmp_path / 'x').write_text('{at}')" for at in range(TESTS // 20)]
        (suite / f"test_{number}.py").write_text("\n".join(lines))
    with zipfile.ZipFile(wheel, "w") as made:
        for number in range(MODULES):
            made.writestr(f"many/m{number}.py", f"X = {number}\n")
        made.writestr("many-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: many\nVersion: 1.0\n")
        made.writestr("many-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        made.writestr("many-1.0.dist-info/RECORD", "")
    python = [sys.executable, "-B", "-m"]
    return {
        f"git status of {FILES} files": ["git", "status", "--porcelain"],
        f"pytest of {TESTS} tests": [*python, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "suite", "--basetemp", "@/t", "suite"],
        f"pip install of a wheel of {MODULES} files": [*python, "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--target", "@/p", wheel.name],
    }  # fmt: skip


def timed(argv: list[str]) -> list[str]:
    """The command line that prints how many milliseconds `argv` took."""
    return ["/usr/bin/python3", "-I", "-c", _TIMED, *argv]


def run(argv: list[str], env: Mapping[str, str], cwd: Path) -> float:
    """Plain, or in whatever `argv` begins with."""
    done = subprocess.run(argv, env=env, cwd=cwd, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return float(done.stdout)


async def in_agent(adapter: LocalProcessOrchestrator, argv: list[str]) -> float:
    """As an agent of the default profile. Raises AssertionError with its last words when it fails."""
    spec = AgentSpec(name="work", argv=tuple(timed(argv)), profile="sandboxed")
    found = await adapter.run_once(spec, request_id=uuid7())
    assert found.exit.code == 0, (found.exit, found.stderr[-500:], found.stdout[-500:])
    return float(found.stdout)


async def measure(box: AgentHostBox, runs: int, python: Path | None) -> list[Claim]:
    """All kinds of all three."""
    adapter = LocalProcessOrchestrator(
        SlotConfig(slot="orchestrator", use="local-process", required=True, paths=box.paths), Deps(metrics=Metrics())
    )
    await adapter.open(Deadline.after(5))
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="abx-work-") as temp:
        env = {"PATH": os.environ["PATH"], "HOME": temp, "TMPDIR": temp, "LANG": "C.UTF-8"}
        for name, argv in works(box.paths.workspace).items():
            plain: list[float] = []
            ours: list[float] = []
            wrapped: list[float] = []
            bwrap = sandbox_peers.bubblewrap(timed(argv), writable=[temp, str(box.paths.workspace)])
            for _ in range(runs):
                plain.append(run(timed(argv), env, box.paths.workspace))
                ours.append(await in_agent(adapter, argv))
                if bwrap is not None:
                    wrapped.append(run(bwrap, env, box.paths.workspace))
            claims.append(Claim(f"{name}, plain", "ms", plain))
            claims.append(Claim(f"{name}, agent", "ms", ours, None, f"sandboxed; at most {WORSE:g} times plain", f"{name}, plain"))  # fmt: skip
            if wrapped:
                claims.append(Claim(f"{name}, bubblewrap", "ms", wrapped, peer=f"{name}, plain"))
            claims += _locked(name, argv, runs, python, box.paths.workspace, temp)
    await adapter.close()
    return claims


def _locked(name: str, argv: list[str], runs: int, python: Path | None, cwd: Path, temp: str) -> list[Claim]:
    samples = []
    for _ in range(runs):
        if (
            found := sandbox_peers.sandlock(
                python, timed(argv), 1, 0, [temp, str(cwd), "/dev/null"], cwd, {"TMPDIR": temp}
            )
        ) is None:
            return []
        samples.append(float(found[1]))
    return [Claim(f"{name}, sandlock", "ms", samples, peer=f"{name}, plain")]


def main() -> int:
    """Exit 1 when an agent's median is beyond 1.2 times the plain one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="1 run")
    parser.add_argument("--sandlock", type=Path, help="an interpreter that has sandlock")
    parser.add_argument("--out", type=Path, help="keep the samples in this file, not in bench/results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="abx-") as folder:
        box = AgentHostBox(Path(folder), limits={"cpu": float(os.cpu_count() or 1)})
        box.start()
        try:
            claims = asyncio.run(measure(box, 1 if given.quick else given.runs, given.sandlock))
        finally:
            box.stop()
    target = keep("work", claims, given.out)
    rows = json.loads(target.read_text())["claims"]
    slow = [row for row in rows if row["name"].endswith(", agent") and row["times_the_peer"] > WORSE]
    for row in slow:
        print(f"{row['name']}: {row['times_the_peer']:g} times plain, must be {WORSE:g}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

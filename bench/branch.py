"""A branch of 10,000 files: the copy of the workspace that each writing agent gets, beside `cp -a` and `cp -a --reflink=auto`.

`python bench/branch.py [--runs N] [--files N] [--quick] [--folder PLACE]`. Sizes are like those of a repository of sources: log-normal, median
1.6 KB, 37 MB in all. The copies take turns below one folder, so all meet one file system, page cache and load; before each, what the last
one left to be written is written. None is removed before the end: an ext4 without a journal passes over each inode that was freed in the
last minutes, one by one, and a copy would be charged for it. Turns that would fill more than a quarter of what is free are left out. A
branch counts from the call to the list of its start being written.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import Claim, write_results

from agentbox.agents.review import branch

FILES, GOAL = 10_000, 300.0  # files; ms that one branch may take
_LARGEST = 400_000  # bytes
_KINDS = {
    "cp -a": ["cp", "-a", "--reflink=never"],
    "cp -a --reflink=auto": ["cp", "-a", "--reflink=auto"],
}


def fill(workspace: Path, files: int) -> int:
    """400 folders at most, two deep, the same each time. Returns the bytes of all files."""
    seed, total = random.Random(7), 0
    for number in range(files):
        folder = workspace / f"d{number % 40}" / f"s{number % 400}"
        folder.mkdir(parents=True, exist_ok=True)
        size = min(int(seed.lognormvariate(7.4, 1.3)), _LARGEST)
        (folder / f"f{number}.py").write_bytes(seed.randbytes(size))
        total += size
    return total


def room(workspace: Path, kinds: int) -> int:
    """How many turns of so many copies fit into a quarter of what is free, the one that is not counted included; at least 2."""
    taken = sum(path.lstat().st_blocks for path in workspace.rglob("*")) * 512
    return max(2, shutil.disk_usage(workspace).free // 4 // taken // kinds)


def cost(action: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of wall, and of processor in this process and its children, kernel included."""
    before, began = _used(), time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000, (_used() - before) * 1000


def _used() -> float:
    rows = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(row.ru_utime + row.ru_stime for row in rows)


def measure(folder: Path, runs: int, files: int) -> list[Claim]:
    """Wall and processor of each kind; the first turn of all is not counted."""
    workspace = folder / "workspace"
    size = fill(workspace, files)
    runs = min(runs, room(workspace, len(_KINDS) + 1) - 1)

    def branched(target: Path) -> None:
        branch.create(workspace, target, target / "start.jsonl", ("bench", "bench@example.org"))

    actions: dict[str, Callable[[Path], object]] = {"branch": branched}
    for name, words in _KINDS.items():
        actions[name] = partial(_copied, words, workspace)
    walls: dict[str, list[float]] = {name: [] for name in actions}
    used: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(runs + 1):
        for name, action in actions.items():
            os.sync()
            wall, processor = cost(partial(action, folder / f"{name.replace(' ', '')}-{turn}"))
            if turn:
                walls[name].append(wall)
                used[name].append(processor)
    what = f"{files} files, {size / 1e6:.0f} MB, {_kind_of(folder)}"
    claims = []
    for name, samples in walls.items():
        goal = f"; at most {GOAL:g} at the median" if name == "branch" and files == FILES else ""
        peer = "" if name == "cp -a" else "cp -a"
        claims.append(Claim(name, "ms", samples, None, what + goal, peer))
        claims.append(Claim(f"{name}, processor", "ms", used[name], None, "user and system of all its processes", peer and f"{peer}, processor"))  # fmt: skip
    return claims


def _copied(words: list[str], workspace: Path, target: Path) -> None:
    subprocess.run([*words, workspace, target], check=True)


def _kind_of(folder: Path) -> str:
    found = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def main() -> int:
    """Exit 1 when the median of branches is beyond the goal; p95 is told beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--quick", action="store_true", help="2 runs")
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/tmp"), help="where the copies are made"
    )
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="abx-branch-") as folder:
        claims = measure(Path(folder), 2 if given.quick else given.runs, given.files)
    write_results("branch", claims, given.out)
    median = claims[0].summary()["median"]
    if given.files == FILES and median > GOAL:
        print(f"a branch of {FILES} files: {median:.0f} ms, must be {GOAL:g}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

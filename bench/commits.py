"""100 commits in a repository of 10,000 files: read when the agent ends, and shown by the command line.

`python bench/commits.py [--runs N] [--files N] [--commits N] [--quick] [--folder PLACE]`. A real API and agent-host; the
agent makes the commits in its branch, each of three files. "read" is all that the end of the agent takes longer for them: a
sandbox with git, from its start to its result (verified objects, bundle, patches, differences and marks), on the same sealed
branch each time. "shown" is `agentbox review show --commits`, from the start of its process to its end. The goal is that of
both together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from branch import fill
from measure import Claim, write_results
from support.api_box import TOKEN, ApiBox
from support.host_configs import host_config

from agentbox.agents.review import baseline
from agentbox.agents.review.change import Review
from agentbox.agents.review.commits.extraction import CommitExtractor
from agentbox.agents.review.commits.history import inspect
from agentbox.sandbox.launcher.client import LauncherClient

FILES, COMMITS, GOAL = 10_000, 100, 1_500.0  # ms for both together
_COMMAND = """
import sys
from agentbox.host.cli import context, main
from agentbox.client import BoxClient
context.CliContext.client = lambda cli: BoxClient({url!r}, token={token!r}, timeout=30)
main.main(sys.argv[1:])
"""


def measure(folder: Path, runs: int, files: int, commits: int) -> list[Claim]:
    """Both, and their sum sample by sample."""
    with ApiBox(folder) as box, box.client() as client:
        workspace = box.paths.workspace
        fill(workspace, files)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            user = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *user, *words], cwd=workspace, check=True)
        names = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*.py"))
        script = "".join(
            f"for f in {' '.join(names[3 * number : 3 * number + 3])}; do echo {number} >> $f; done; "
            f"git commit -q -a -m 'change {number}'\n"
            for number in range(commits)
        )
        spec = {"name": "bench", "argv": ["/bin/sh", "-c", f"set -e\n{script}"]}
        task_id = client.submit_task({**spec, "profile": "sandboxed"}).task_id
        for _ in client.task_logs(task_id):
            pass
        agent_id = client.get_task(task_id).agent_id
        assert agent_id is not None
        assert client.reviews.commits(agent_id, limit=1).summary.count == commits
        read = asyncio.run(_read(box, agent_id, runs))
        shown = [_shown(box, agent_id, commits) for _ in range(runs + 1)][1:]
    what = f"{commits} commits in {files} files"
    both = [sum(pair) for pair in zip(read, shown, strict=True)]
    return [
        Claim("commits read and shown", "ms", both, GOAL, f"{what}; at most {GOAL:g}"),
        Claim("commits read", "ms", read, None, f"{what}; once, when the agent ends"),
        Claim("commits shown", "ms", shown, None, f"{what}; the whole command"),
    ]


async def _read(box: ApiBox, agent_id: str, runs: int) -> list[float]:
    sealed = box.paths.branches / agent_id / "sealed"
    stored = box.paths.slot("orchestrator") / "reviews" / agent_id
    start = baseline.read(stored / "start.jsonl")
    review = Review.from_json(json.loads((stored / "review.json").read_text()))
    assert start is not None
    launcher = LauncherClient()
    extractor = CommitExtractor(host_config(box.paths), launcher, "bench")
    samples = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        history = inspect(sealed, Path(start.workspace), start.git, start.objects)
        record = await extractor.extract(
            history,
            agent_id=agent_id,
            name="bench",
            sealed=sealed,
            directory=sealed.parent / "again",
            objects=start.objects,
            changes=review.changes,
            when=0,
        )
        samples.append((time.perf_counter() - began) * 1000)
        assert record is not None
        assert record.count, record.detail
    await launcher.close()
    return samples[1:]


def _shown(box: ApiBox, agent_id: str, commits: int) -> float:
    code = _COMMAND.format(url=box.url, token=TOKEN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, "review", "show", "--commits", agent_id],
        check=True,
        capture_output=True,
    )
    wall = (time.perf_counter() - began) * 1000
    assert done.stdout.count(b"\ncommit ") == commits
    return wall


def main() -> int:
    """Exit 1 when the p95 of both together is beyond the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--commits", type=int, default=COMMITS)
    parser.add_argument("--quick", action="store_true", help="2 runs")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="where the box is")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="abx-") as folder:
        runs = 2 if given.quick else given.runs
        claims = measure(Path(folder), runs, given.files, given.commits)
    write_results("commits", claims, given.out)
    p95 = claims[0].summary()["p95"]
    if (given.files, given.commits) == (FILES, COMMITS) and p95 > GOAL:
        print(f"read and shown in {p95:.0f} ms, must be {GOAL:g}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

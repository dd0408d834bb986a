"""A mount that becomes read-only is detected through the kernel, in a mount namespace of the
test's."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, json, subprocess, sys, time
from pathlib import Path
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.readiness.requirements.paths import PathsRequirement
from agentbox.core.paths import Paths
from support.prefix_box import make_plan

def mount(*argv):
    subprocess.run(["mount", *argv], check=True)

async def main():
    root = Path(sys.argv[1])
    (root / "workspace").mkdir()
    mount("-t", "tmpfs", "none", str(root / "workspace"))
    evaluator = Evaluator([PathsRequirement(Paths(root), make_plan(1, (), writable_roots=("/workspace",)))])
    task = asyncio.create_task(evaluator.run())
    async def until(ready):
        begun = time.monotonic()
        while evaluator.verdict.ready != ready and time.monotonic() - begun < 10:
            await asyncio.sleep(0.005)
        return round(time.monotonic() - begun, 3)
    await until(True)
    mount("-o", "remount,ro", str(root / "workspace"))
    fell, missing = await until(False), evaluator.verdict.missing
    mount("-o", "remount,rw", str(root / "workspace"))
    rose = await until(True)
    print(json.dumps({"fell": fell, "missing": missing, "rose": rose, "ready": evaluator.verdict.ready}))
    task.cancel()

asyncio.run(main())
"""


def test_a_remount_is_noticed_without_waiting_for_the_period(tmp_path: Path) -> None:
    """A remount is noticed without waiting for the period."""
    argv = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        sys.executable,
        "-c",
        SCRIPT,
        str(tmp_path),
    ]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["missing"] == ["path not accessible: /workspace"]
    assert found["fell"] < 2
    assert found["rose"] < 2
    assert found["ready"]

"""A whole command against an idle box, from the shell's fork to its exit, beside `docker run` of the same image.

With `--before`, another checkout's agentbox.sh is measured in turn with this one's, against the same box.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path

from measure import Claim, docker, run_main, write_results

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext

RUN, READ = 0.3, 0.2  # seconds, p95
_WARM_UPS = 2
PEER = "docker run true"


def verbs(cli: CliContext) -> dict[str, float]:
    """Commands that a person types often, and their bounds."""
    with cli.client() as client:
        client.submit_task({"name": "true", "argv": ["true"], "profile": "sandboxed"})
        task = client.list_tasks(limit=1).items[0].task_id
        agent = client.agents.list(limit=1).items[0].agent_id
    reads = (
        "status",
        "task list",
        f"task show {task}",
        "agent list",
        f"agent show {agent}",
        "review list",
        "approvals list",
        "bead list",
        f"bead show {task}",
        "pod ls",
        "memory list",
        "events search true",
        "completion ids tasks",
    )
    return {"run -- true": RUN, **dict.fromkeys((*reads, "events tail"), READ)}


def spent(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of wall-clock time, and of processor time of the command itself."""
    started = time.perf_counter()
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a box that is not ready
        raise AgentboxError(
            f"cannot measure {' '.join(words)}: {said.decode(errors='replace').strip()}"
        )
    return seconds, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Needs a running box (`agentbox up`), and for the peer an image (`--image`, default that of the box)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--manifest", type=Path, default=CHECKOUT / "agentbox.toml")
    parser.add_argument("--before", type=Path, help="Another checkout, for the same commands.")
    parser.add_argument("--image", default="")
    asked = parser.parse_args()
    cli = CliContext(manifest_argument=asked.manifest.absolute())
    image = asked.image or cli.running_record().image_id
    checkouts = {"": CHECKOUT, **({", before": asked.before.absolute()} if asked.before else {})}
    bounds = verbs(cli)
    wall: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for turn in range(-_WARM_UPS, asked.runs):
        peer = time.perf_counter()
        docker("run", "--rm", "--network", "none", "--entrypoint", "/usr/bin/true", image)
        peer = time.perf_counter() - peer
        if turn >= 0:
            wall.setdefault(PEER, []).append(peer)
        for verb in bounds:
            for suffix, checkout in checkouts.items():
                words = [
                    str(checkout / "agentbox.sh"),
                    "--manifest",
                    str(cli.manifest),
                    *verb.split(),
                ]
                seconds, cpu = spent(words, checkout)
                if turn >= 0:
                    name = (
                        " ".join(verb.split()[:2] if verb != "run -- true" else verb.split())
                        + suffix
                    )
                    wall.setdefault(name, []).append(seconds)
                    processor.setdefault(f"{name}, processor time", []).append(cpu)
    must = {
        " ".join(verb.split()[:2]) if verb != "run -- true" else verb: bound
        for verb, bound in bounds.items()
    }
    conditions = f"{_WARM_UPS} warm-ups, commands in turn, load {os.getloadavg()[0]:.1f} at the end"
    claims = [
        Claim(name, "s", row, must.get(name), conditions, peer=PEER) for name, row in wall.items()
    ]
    write_results(
        "command_line",
        [*claims, *(Claim(name, "s", row, None, conditions) for name, row in processor.items())],
    )


if __name__ == "__main__":
    run_main(main)

"""A build with nothing new, and one after a one-line change in the package (build and load), and a warm `up`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measure import Claim, docker, measure_seconds, run_main, write_results

from agentbox.core.errors import AgentboxError

ROOT = Path(__file__).resolve().parents[1]
CHANGED = ROOT / "agentbox/api/app.py"
_MOST = 5


def agentbox(*words: str) -> float:
    """Seconds of one call of the command line."""
    argv = [sys.executable, "-m", "agentbox", "--quiet", *words]
    started = time.perf_counter()
    if subprocess.run(argv, cwd=ROOT, check=False, stdout=subprocess.DEVNULL).returncode:
        raise AgentboxError(f"cannot measure: `agentbox {' '.join(words)}` failed")
    return time.perf_counter() - started


def one_line(number: int) -> float:
    """Adds a comment to one file, builds and loads, and puts the file back."""
    before = CHANGED.read_text()
    try:
        CHANGED.write_text(f"{before}# {number}\n")
        return agentbox("build")
    finally:
        CHANGED.write_text(before)


def main() -> None:
    """Needs Nix, a container engine and a running box."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = min(parser.parse_args().runs, _MOST)
    agentbox("build")
    changed = [one_line(number) for number in range(runs)]
    agentbox("build")
    idle = [agentbox("build") for _ in range(runs)]
    agentbox("up")
    warm = [agentbox("up") for _ in range(runs)]
    plain = [measure_seconds(lambda: docker("version")) for _ in range(runs)]
    write_results("build", [
        Claim("no-op build", "s", idle, 2, "nothing changed since the last"),
        Claim("build and load after a one-line change", "s", changed, 15, "a comment added to agentbox/api/app.py"),
        Claim("warm up", "s", warm, 6, "box running and ready, nothing changed", peer="docker version"),
        Claim("docker version", "s", plain, None, "one round trip of the engine's own client"),
    ])  # fmt: skip


if __name__ == "__main__":
    run_main(main)

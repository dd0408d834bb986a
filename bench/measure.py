"""Samples, percentiles, host, and the JSON file that keeps every raw number."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.state import BoxRecord

RESULTS = Path(__file__).parent / "results"


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; `share` in 0..1. Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass
class Claim:
    """One measured claim: raw samples in the unit named, a bound or none, conditions in words."""

    name: str
    unit: str
    samples: list[float]
    must_p95: float | None = None
    conditions: str = ""
    peer: str = ""  # name of the claim it is compared with, measured in the same run
    extra: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Percentiles beside the raw samples, which keep five digits."""
        numbers = {
            "p50": percentile(self.samples, 0.5),
            "p95": percentile(self.samples, 0.95),
            "p99": percentile(self.samples, 0.99),
        }
        raw = [float(f"{sample:.5g}") for sample in self.samples]
        return {
            **self.__dict__,
            "samples": raw,
            **numbers,
            "n": len(raw),
            "median": statistics.median(raw),
        }


def host() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "",
    )
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return {
        "cpus": os.cpu_count(), "cpu": model, "kernel": platform.release(), "python": platform.python_version(),
        "real_time": os.sched_getscheduler(0) != os.SCHED_OTHER, "load": os.getloadavg()[0], "commit": commit.stdout.strip(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


def keep(bench: str, claims: Sequence[Claim], out: Path | None = None, *, only: str = "") -> Path:
    """Writes `results/<bench>.json`, or `out`, and prints a table; a claim whose peer was measured too says how many times its
    median it took. With `only`, rows whose names begin so are replaced, each with the host it was measured on; the file keeps the
    others, and its own host."""
    RESULTS.mkdir(exist_ok=True)
    rows = [claim.summary() for claim in claims]
    medians = {row["name"]: row["median"] for row in rows}
    for row in rows:
        if row["peer"] in medians:
            row["times_the_peer"] = float(f"{row['median'] / medians[row['peer']]:.3g}")
    target, at, kept = out or RESULTS / f"{bench}.json", host(), []
    if only and target.exists():
        before = json.loads(target.read_text())
        kept = [row for row in before["claims"] if not row["name"].startswith(only)]
        rows, at = [{**row, "host": at} for row in rows], before["host"]
    lines = ",\n".join(
        json.dumps(row, sort_keys=True, separators=(",", ":")) for row in kept + rows
    )
    head = f'"bench": {json.dumps(bench)},\n"host": {json.dumps(at, sort_keys=True)}'
    target.write_text(f'{{{head},\n"claims": [\n{lines}\n]}}\n')
    for row in rows:
        bound = f"  must {row['must_p95']:g}" if row["must_p95"] is not None else ""
        bound += (
            f"  {row['times_the_peer']:g} times {row['peer']}" if "times_the_peer" in row else ""
        )
        print(
            f"{row['name']:<44} n={row['n']:<5} p50 {row['p50']:9.3f}  p95 {row['p95']:9.3f}  p99 {row['p99']:9.3f} {row['unit']}{bound}"
        )
    return target


def seconds_of(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def told(main: Callable[[], int | None]) -> NoReturn:
    """Runs a bench and leaves with its exit code. What it lacks is told in a sentence, as by the command line."""
    try:
        sys.exit(main() or 0)
    except AgentboxError as error:
        print(error.message, *filter(None, [error.hint]), sep="\n", file=sys.stderr)
        sys.exit(error.exit_code)


def container() -> BoxRecord:
    """The box of this user, which runs in a container. Raises AgentboxError where none does."""
    record = CliContext().state().running_record()
    if record.engine == "process":
        raise AgentboxError(
            f"cannot measure {record.name}: it is no container", exit_code=ExitCode.ENGINE
        )
    if docker("inspect", "--format", "{{.State.Running}}", record.name).strip() != "true":
        raise AgentboxError(
            f"cannot measure {record.name}: it is stopped",
            "Start it: ./agentbox.sh up",
            exit_code=ExitCode.NOT_RUNNING,
        )
    return record


def docker(*words: str) -> str:
    """What the docker client prints. Raises AgentboxError when there is none, or with its last line when it fails."""
    try:
        done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise AgentboxError(
            "cannot measure: there is no docker client", exit_code=ExitCode.ENGINE
        ) from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise AgentboxError(
            f"cannot measure: docker {words[0]} failed: {said}", exit_code=ExitCode.ENGINE
        )
    return done.stdout

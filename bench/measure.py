"""Samples, percentiles, host, and the JSON files of results."""

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
RAW = Path(__file__).parent / "raw"  # every sample; not in git
_BINS = 20


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
        """Count, percentiles and a histogram, in the unit of the claim."""
        fields = {name: value for name, value in self.__dict__.items() if name != "samples"}
        return {
            **fields,
            "n": len(self.samples),
            "min": _rounded(min(self.samples)),
            "p50": _rounded(percentile(self.samples, 0.5)),
            "p95": _rounded(percentile(self.samples, 0.95)),
            "p99": _rounded(percentile(self.samples, 0.99)),
            "max": _rounded(max(self.samples)),
            "median": _rounded(statistics.median(self.samples)),
            "histogram": histogram(self.samples),
        }


def histogram(samples: Sequence[float]) -> list[int]:
    """Counts of 20 bins of equal width from the smallest to the largest sample; one if all are equal."""
    low, high = min(samples), max(samples)
    if low == high:
        return [len(samples)]
    counts = [0] * _BINS
    for sample in samples:
        counts[min(_BINS - 1, int((sample - low) / (high - low) * _BINS))] += 1
    return counts


def _rounded(number: float) -> float:
    return float(f"{number:.5g}")


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


def write_results(
    bench: str, claims: Sequence[Claim], out: Path | None = None, *, only: str = ""
) -> Path:
    """Writes `results/<bench>.json` and every sample to `raw/<bench>.json`, or both to `out`, and
    prints a table. A claim whose peer was measured in the same run has the ratio of the medians.
    With `only`, rows whose names begin so are replaced, each with the host it was measured on; the
    file keeps the others, and its own host."""
    rows = [claim.summary() for claim in claims]
    medians = {row["name"]: row["median"] for row in rows}
    for row in rows:
        if row["peer"] in medians:
            row["times_the_peer"] = float(f"{row['median'] / medians[row['peer']]:.3g}")
    this_host = host()
    samples = {claim.name: [_rounded(sample) for sample in claim.samples] for claim in claims}
    if out:
        _write(out, bench, this_host, [{**row, "samples": samples[row["name"]]} for row in rows])
    else:
        _write(RESULTS / f"{bench}.json", bench, *_merged(bench, this_host, rows, only))
        RAW.mkdir(exist_ok=True)
        (RAW / f"{bench}.json").write_text(json.dumps({"host": this_host, "samples": samples}))
    for row in rows:
        _print_row(row)
    return out or RESULTS / f"{bench}.json"


def _merged(
    bench: str, this_host: dict[str, Any], rows: list[dict[str, Any]], only: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    target = RESULTS / f"{bench}.json"
    if not only or not target.exists():
        return this_host, rows
    before = json.loads(target.read_text())
    others = [row for row in before["claims"] if not row["name"].startswith(only)]
    return before["host"], others + [{**row, "host": this_host} for row in rows]


def _write(target: Path, bench: str, at: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """A line for each claim."""
    target.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(row, sort_keys=True, separators=(",", ":")) for row in rows)
    head = f'"bench": {json.dumps(bench)},\n"host": {json.dumps(at, sort_keys=True)}'
    target.write_text(f'{{{head},\n"claims": [\n{lines}\n]}}\n')


def _print_row(row: dict[str, Any]) -> None:
    bound = f"  must {row['must_p95']:g}" if row["must_p95"] is not None else ""
    if "times_the_peer" in row:
        bound += f"  {row['times_the_peer']:g} times {row['peer']}"
    percentiles = "  ".join(f"{name} {row[name]:9.3f}" for name in ("p50", "p95", "p99"))
    print(f"{row['name']:<44} n={row['n']:<5} {percentiles} {row['unit']}{bound}")


def measure_seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def run_main(main: Callable[[], int | None]) -> NoReturn:
    """Runs a bench and exits with its code. A missing requirement is one sentence, as on the command line."""
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

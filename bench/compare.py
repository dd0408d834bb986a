"""Two checkouts beside each other in one run: a benchmark of one, then the same of the other, and again.

`python bench/compare.py BEFORE AFTER [--rounds N] [--only NAME,...] [--at-most RATIO] [--out FILE]`. Each checkout runs its own
`bench/<name>.py` with its own environment; every round changes which one is first. A row is the ratio of the medians over
all rounds (AFTER divided by BEFORE) of a claim that both name alike. `start` and `footprint` need a box: each checkout
starts its own, since both use one name. `--at-most 1.05 --only start,footprint,spawn` is an error if a box that uses
nothing new has become worse by more than that: start, idle memory, image, spawn. Run it on a machine that does nothing
else. The checkouts' own results are put back afterwards.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from measure import RESULTS, host, run_main

from agentbox.core.errors import AgentboxError

# name -> (arguments, seconds that one run may take, whether it needs a running box)
BENCHES = {
    "livez": (["--seconds", "10"], 120, False),
    "slots": (["--quick", "--only", "beads,pods,events,orchestrator"], 900, False),
    "answers": ([], 600, False),
    "spawn": (["--count", "200"], 600, False),
    "validate": (["--runs", "15"], 300, False),
    "start": (["--runs", "10"], 300, True),
    "footprint": ([], 300, True),
}
# What a box costs that uses none of the optional parts; the other claims of these benchmarks are peers.
COSTS = (
    ("start", "container start to /ready"),
    ("footprint", "control plane idle, sum of PSS"),
    ("footprint", "image, compressed"),
    ("spawn", "sandbox spawn of /bin/true"),
    ("spawn", "agent spawn of /bin/true"),
)
Samples = dict[tuple[str, str], list[float]]


def call(
    checkout: Path,
    argv: list[str],
    seconds: int,
    accepted: tuple[int, ...] = (0,),
    **variables: str,
) -> str:
    """The output. Raises AgentboxError with its end for another exit code, or if it takes too long."""
    try:
        done = subprocess.run(
            argv,
            cwd=checkout,
            env={**os.environ, **variables},
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise AgentboxError(f"{' '.join(argv)} in {checkout} took over {seconds} s") from error
    output = done.stdout + done.stderr
    if done.returncode not in accepted:
        raise AgentboxError(f"{' '.join(argv)} failed: {output[-2000:]}")
    return output


def measured(checkout: Path, name: str) -> dict[str, float]:
    """Claim to median, of one run of one benchmark. A short run is written to the temporary folder, a whole one to the
    checkout's results."""
    arguments, seconds, _box = BENCHES[name]
    kept = checkout / "bench/results" / f"{name}.json"
    before = kept.read_bytes()
    kept.unlink()
    try:
        with tempfile.TemporaryDirectory(prefix="agentbox-compare-", dir="/var/tmp") as folder:
            argv = [".venv/bin/python", f"bench/{name}.py", *arguments]
            # exit code 1: a bound was missed
            output = call(
                checkout, argv, seconds, accepted=(0, 1), TMPDIR=folder, PYTHONPATH="tests:testkit"
            )
            found = [path for path in (kept, Path(folder, f"{name}.json")) if path.exists()]
            if not found:
                raise AgentboxError(f"bench/{name}.py in {checkout} kept nothing: {output[-2000:]}")
            rows = json.loads(found[0].read_text())["claims"]
            return {row["name"]: float(row["median"]) for row in rows}
    finally:
        kept.write_bytes(before)


def one_round(checkout: Path, names: list[str], samples: Samples) -> None:
    """Runs the benchmarks of one checkout; a box is up only while those run that need it."""
    for name in (name for name in names if not BENCHES[name][2]):
        for claim, median in measured(checkout, name).items():
            samples[(name, claim)].append(median)
    with_box = [name for name in names if BENCHES[name][2]]
    if with_box:
        call(checkout, ["./agentbox.sh", "up"], 900)
        try:
            for name in with_box:
                for claim, median in measured(checkout, name).items():
                    samples[(name, claim)].append(median)
        finally:
            call(checkout, ["./agentbox.sh", "down"], 120)


def main() -> None:
    """Prints a line for each claim, and keeps `results/compare.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(BENCHES))
    parser.add_argument("--at-most", type=float, help="ratio that no cost of a plain box exceeds")
    parser.add_argument("--out", type=Path, default=RESULTS / "compare.json")
    given = parser.parse_args()
    names = given.only.split(",")
    sides: dict[Path, Samples] = {given.before: defaultdict(list), given.after: defaultdict(list)}
    for number in range(given.rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for checkout in order:
            one_round(checkout, names, sides[checkout])
    before, after = sides.values()
    rows = [
        {
            "bench": name,
            "claim": claim,
            "before": statistics.median(values),
            "after": statistics.median(after[(name, claim)]),
            "ratio": round(statistics.median(after[(name, claim)]) / statistics.median(values), 3),
            "runs_before": values,
            "runs_after": after[(name, claim)],
        }
        for (name, claim), values in before.items()
        if (name, claim) in after and statistics.median(values)
    ]
    for row in rows:
        print(
            f"{row['ratio']:6.3f}  {row['before']:10.4g} {row['after']:10.4g}  {row['bench']}: {row['claim']}"
        )
    given.out.write_text(
        json.dumps({"host": host(), "rounds": given.rounds, "rows": rows}, indent=1)
    )
    if given.at_most is not None:
        check(rows, given.at_most)


def check(rows: list[dict[str, Any]], at_most: float) -> None:
    """Raises AgentboxError for a cost that was not measured on both sides, or has a larger ratio."""
    ratios = {(row["bench"], row["claim"]): row["ratio"] for row in rows}
    missing = [claim for bench, claim in COSTS if (bench, claim) not in ratios]
    if missing:
        raise AgentboxError(f"not measured on both sides: {', '.join(missing)}")
    worse = [
        f"{claim} ({ratios[bench, claim]})"
        for bench, claim in COSTS
        if ratios[bench, claim] > at_most
    ]
    if worse:
        raise AgentboxError(f"worse than {at_most} of before: {', '.join(worse)}")


if __name__ == "__main__":
    run_main(main)

"""The product's benches as modules: their ways to measure, and their way to store raw numbers."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from agentbox.core.paths import CHECKOUT

BENCH = CHECKOUT / "bench"
KEPT = (
    CHECKOUT / "build" / "runtime-contract"
)  # raw numbers of this suite; `bench/results` has those of real runs


def load(name: str) -> ModuleType:
    """`bench/<name>.py`. Benches import each other by name, so each stays in `sys.modules`."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def keep(name: str, what: str, unit: str, runs: Sequence[Sequence[float]], must: float) -> float:
    """Stores the raw samples of every run as JSON and returns the best p95."""
    measure = load("measure")
    KEPT.mkdir(parents=True, exist_ok=True)
    best = min(measure.percentile(run, 0.95) for run in runs)
    kept = {
        "what": what,
        "unit": unit,
        "runs": [list(run) for run in runs],
        "best_p95": best,
        "must": must,
    }
    (KEPT / f"{name}.json").write_text(
        json.dumps({**kept, "host": measure.host()}, indent=1) + "\n"
    )
    return float(best)


def livez(url: str, seconds: float, out: Path) -> list[float]:
    """Milliseconds of each request of the bench's load of four clients at 200/s."""
    argv = [
        sys.executable,
        str(BENCH / "livez.py"),
        url,
        "--seconds",
        str(seconds),
        "--out",
        str(out),
    ]
    subprocess.run(argv, check=True, capture_output=True)
    found: list[float] = json.loads(out.read_text())["claims"][0]["samples"]
    return found

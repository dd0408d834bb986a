"""RC-035: the numbers that the product must keep, measured on this host; raw samples in `build/runtime-contract`.

Columns D and H. The best p95 of up to three short runs counts, so that another load of the machine does not. A release
measures the rest with `agentbox bench`: cold and warm `up`, builds, `verify`, `down` with ten agents.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.benches import keep, livez
from harness.box import Box
from harness.images import Images
from harness.outcomes import API_PORT

RUNS, STARTS, WARM_UPS = 3, 3, 1
START_SECONDS = 2.5
LIVEZ_MS = 30.0
PSS_MIB = 160.0
IMAGE_MB = 115.0
_POLL_SECONDS = 0.005
# Proportional size of each process of the box but this one.
PSS = """
import os, pathlib, sys
total = 0
for pid in sys.argv[1:] or [entry.name for entry in pathlib.Path("/proc").glob("[0-9]*")]:
    if int(pid) != os.getpid():
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1])
print(total)
"""


def best_of(measure: Callable[[], list[float]], must: float) -> list[list[float]]:
    """Runs until one is within its bound, three at most."""
    runs: list[list[float]] = []
    while len(runs) < RUNS:
        runs.append(measure())
        if max(runs[-1]) <= must:
            break
    return runs


def start_seconds(box: Box) -> float:
    """From the engine's start of a box that was stopped in order to the first 200."""
    box.stop()
    started = time.perf_counter()
    box.boot_again()
    while (answer := box.try_get("/ready")) is None or answer.status != 200:
        assert time.perf_counter() - started < 30, box.log_lines()[-5:]
        time.sleep(_POLL_SECONDS)
    return time.perf_counter() - started


@pytest.mark.timed
def test_rc_035_start(make_box: Callable[..., Box]) -> None:
    """Start to `/ready` 200: p95 within 2.5 s."""
    box = make_box()
    box.start()
    box.wait_ready()
    for _ in range(WARM_UPS):
        start_seconds(box)
    runs = best_of(lambda: [start_seconds(box) for _ in range(STARTS)], START_SECONDS)
    assert (
        keep(f"start-{box.engine}", "start to /ready 200", "s", runs, START_SECONDS)
        <= START_SECONDS
    )


@pytest.mark.timed
def test_rc_035_livez(loaded: Box, tmp_path: Path) -> None:
    """`/livez` under four clients of 200 requests a second: p99 within 30 ms."""
    url, out = f"http://127.0.0.1:{API_PORT}", tmp_path / "livez.json"
    runs = best_of(lambda: sorted(livez(url, 2, out))[: int(0.99 * 4 * 200 * 2)], LIVEZ_MS)
    keep(f"livez-{loaded.engine}", "/livez, the fastest 99 %", "ms", runs, LIVEZ_MS)
    assert min(max(run) for run in runs) <= LIVEZ_MS


def test_rc_035_memory(running: Box) -> None:
    """Supervisord, API, gateway, agent-host and its launcher, idle: at most 160 MiB in proportional size."""
    members = getattr(running, "members", list)()
    samples = [int(running.python(PSS, *map(str, members)).out) / 1024 for _ in range(3)]
    assert min(samples) > 10
    assert (
        keep(f"memory-{running.engine}", "control plane, idle", "MiB", [samples], PSS_MIB)
        <= PSS_MIB
    )


def test_rc_035_image(images: Images) -> None:
    """The core profile's image: at most 115 MB compressed."""
    size = images.plain.size / 1e6
    assert keep("image", "image, compressed", "MB", [[size]], IMAGE_MB) <= IMAGE_MB
    assert size > 10

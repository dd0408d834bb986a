"""Sandboxes over a real API and agent-host: create, the first and every further program, eight at a time.

`python bench/sandbox_exec.py [--count N]`. The workspace is empty. A create counts from the request to its answer, an exec
to the answer with output and exit, over one kept connection.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import Claim, write_results
from support.api_box import ApiBox

from agentbox.client import BoxClient

_TRUE = ["/bin/true"]
_WARM_UPS = 10
_PARALLEL = 8
_CONDITIONS = "API and agent-host on this machine, empty workspace, profile sandboxed"


def timed(call: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def creates(client: BoxClient, count: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of a create, of its first program, and of its end."""
    found: tuple[list[float], ...] = ([], [], [])
    for _ in range(_WARM_UPS + count):
        marks = [time.perf_counter()]
        one = client.sandboxes.create("bench").sandbox_id
        marks.append(time.perf_counter())
        client.sandboxes.exec(one, _TRUE)
        marks.append(time.perf_counter())
        client.sandboxes.end(one, grace_s=0)
        marks.append(time.perf_counter())
        for samples, start, end in zip(found, marks, marks[1:], strict=False):
            samples.append((end - start) * 1000)
        time.sleep(0.05)  # what an end leaves to do is no part of the next create
    first, second, third = (samples[_WARM_UPS:] for samples in found)
    return first, second, third


def execs(client: BoxClient, sandbox_id: str, count: int) -> list[float]:
    """Milliseconds of one program after another."""
    samples = [
        timed(lambda: client.sandboxes.exec(sandbox_id, _TRUE)) for _ in range(_WARM_UPS + count)
    ]
    return samples[_WARM_UPS:]


def paused_execs(client: BoxClient, sandbox_id: str, count: int) -> list[float]:
    """As `execs`, with a pause between two."""
    samples = []
    for _ in range(count):
        time.sleep(0.05)  # the next spare process is forked meanwhile, as between two uses
        samples.append(timed(lambda: client.sandboxes.exec(sandbox_id, _TRUE)))
    return samples


def parallel(box: ApiBox, sandbox_id: str, count: int) -> list[float]:
    """Milliseconds of each of several at a time."""

    def run(_: int) -> list[float]:
        with box.client() as client:
            return [
                timed(lambda: client.sandboxes.exec(sandbox_id, _TRUE))
                for _ in range(count // _PARALLEL)
            ]

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return [sample for samples in pool.map(run, range(_PARALLEL)) for sample in samples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    prefix = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    try:
        with ApiBox(prefix) as box, box.client() as client:
            created, first, ended = creates(client, options.count // 2)
            one = client.sandboxes.create("bench").sandbox_id
            rows = [
                Claim("create", "ms", created, must_p95=60, conditions=_CONDITIONS),
                Claim("first exec of /bin/true", "ms", first, conditions=_CONDITIONS),
                Claim("end", "ms", ended, conditions=_CONDITIONS),
                Claim(
                    "exec of /bin/true", "ms", paused_execs(client, one, options.count),
                    must_p95=30, conditions=f"{_CONDITIONS}; 50 ms between two",
                ),
                Claim(
                    "exec of /bin/true, one after another", "ms", execs(client, one, options.count),
                    must_p95=30, conditions=_CONDITIONS,
                ),
                Claim(
                    f"exec of /bin/true, {_PARALLEL} at a time", "ms",
                    parallel(box, one, options.count), conditions=_CONDITIONS,
                ),
            ]  # fmt: skip
            client.sandboxes.end(one, grace_s=0)
        write_results("sandbox_exec", rows, options.out)
    finally:
        shutil.rmtree(prefix)


if __name__ == "__main__":
    main()

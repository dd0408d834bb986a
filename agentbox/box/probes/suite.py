"""Runs the artifact probes of a stage in parallel, within one deadline. Standard library only."""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Literal

from agentbox.box.probes.base import Check, ProbeResult
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Probe

TOTAL_SECONDS = 20.0
_SIGNAL_CHECK = (
    0.05  # seconds between checks for signals; the main thread handles one only between waits
)
FORCED = "forced missing by a test hook"


def run_probes(
    plan: Plan,
    paths: Paths,
    stage: Literal["boot", "deep"],
    *,
    force_missing: str = "",
    total_seconds: float = TOTAL_SECONDS,
) -> list[ProbeResult]:
    """One result per probe of that stage, in the plan's order. A probe without a result at the
    deadline has failed.

    `force_missing` is the id of a probe that must fail (test hook); an unknown id fails too, so
    that a misspelt hook does not pass a test.
    """
    probes = [probe for probe in plan.probes if probe.stage == stage]
    if (
        force_missing
        and stage == "boot"
        and force_missing not in {probe.id for probe in plan.probes}
    ):
        probes.append(
            Probe(id=force_missing, feature="", kind="path", reason="named by a test hook")
        )
    return _run_all(probes, paths, force_missing, time.monotonic() + total_seconds)


def _run_all(probes: list[Probe], paths: Paths, forced: str, deadline: float) -> list[ProbeResult]:
    pending: queue.SimpleQueue[tuple[int, Probe]] = queue.SimpleQueue()
    for row in enumerate(_slowest_first(probes)):
        pending.put(row)
    results: queue.SimpleQueue[ProbeResult] = queue.SimpleQueue()
    workers = min(len(probes), 2 * len(os.sched_getaffinity(0)))
    for _ in range(workers):
        threading.Thread(
            target=_work, args=(pending, results, paths, forced, deadline), daemon=True
        ).start()
    finished = _collect(results, len(probes), deadline)
    return [finished.get(probe.id) or _timeout_result(probe) for probe in probes]


def _slowest_first(probes: Iterable[Probe]) -> list[Probe]:
    """A child interpreter takes longest, so it starts first."""
    return sorted(probes, key=lambda probe: probe.kind == "path")


def _collect(
    results: "queue.SimpleQueue[ProbeResult]", count: int, deadline: float
) -> dict[str, ProbeResult]:
    finished: dict[str, ProbeResult] = {}
    while len(finished) < count:
        remaining = max(0.0, deadline - time.monotonic())
        try:
            result = results.get(timeout=min(remaining, _SIGNAL_CHECK))
        except queue.Empty:
            if remaining:
                continue
            break
        finished[result.id] = result
    return finished


def _work(
    pending: "queue.SimpleQueue[tuple[int, Probe]]",
    results: "queue.SimpleQueue[ProbeResult]",
    paths: Paths,
    forced: str,
    deadline: float,
) -> None:
    while True:
        try:
            _, probe = pending.get_nowait()
        except queue.Empty:
            return
        results.put(run_probe(probe, paths, forced=probe.id == forced, deadline=deadline))


def run_probe(
    probe: Probe, paths: Paths, *, forced: bool = False, deadline: float | None = None
) -> ProbeResult:
    """Runs one probe within its own time limit and the deadline."""
    start = time.monotonic()
    seconds = (
        probe.timeout_seconds
        if deadline is None
        else max(0.1, min(probe.timeout_seconds, deadline - start))
    )
    if forced:
        detail = FORCED
    else:
        try:
            detail = _load_check(probe.kind)(probe, paths, seconds)
        except OSError as error:
            detail = str(error)
    ms = round((time.monotonic() - start) * 1000, 1)
    return ProbeResult(probe.id, probe.feature, not detail, probe.required, ms, detail)


def _timeout_result(probe: Probe) -> ProbeResult:
    return ProbeResult(
        probe.id,
        probe.feature,
        False,
        probe.required,
        0.0,
        "did not answer before the total deadline",
    )


def _load_check(kind: str) -> Check:
    """Imported on use: Stage A needs no HTTP client, and a box without import probes no child."""
    return _LOADERS[kind]()


def _path() -> Check:
    from agentbox.box.probes.path_probe import check_path

    return check_path


def _exec() -> Check:
    from agentbox.box.probes.exec_probe import check_exec

    return check_exec


def _import() -> Check:
    from agentbox.box.probes.import_probe import check_import

    return check_import


def _http() -> Check:
    from agentbox.box.probes.http_probe import check_http

    return check_http


def _layer_files() -> Check:
    from agentbox.box.probes.layer_files import check_layer_files

    return check_layer_files


_LOADERS: dict[str, Callable[[], Check]] = {
    "path": _path,
    "exec": _exec,
    "python-import": _import,
    "http": _http,
    "layer-files": _layer_files,
}

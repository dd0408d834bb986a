"""Changes of readiness, in metrics and in the log of the boot."""

import asyncio

from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.box.readiness.evaluator import Evaluator, ReadinessVerdict
from agentbox.box.supervision.boot_event_log import BootEventLog


class ReadinessChanges:
    """`ready_once` is set when the box is ready for the first time."""

    def __init__(
        self,
        evaluator: Evaluator,
        metrics: BoxMetrics,
        log: BootEventLog,
        ready_once: asyncio.Event,
    ) -> None:
        self._evaluator, self._metrics, self._log = evaluator, metrics, log
        self._ready_once = ready_once

    def record(self, old: ReadinessVerdict, new: ReadinessVerdict) -> None:
        """Called by the evaluator for every changed verdict."""
        self._metrics.ready.set(new.ready)
        for family, met in self._evaluator.met().items():
            self._metrics.requirement.labels(family).set(met)
        if new.ready:
            self._ready_once.set()
        if old.ready != new.ready:
            self._metrics.transitions.labels("ready" if new.ready else "unready").inc()
            transition = {"from": _verdict_name(old), "to": _verdict_name(new)}
            self._log.emit("ReadinessChanged", missing=list(new.missing), **transition)


def _verdict_name(verdict: ReadinessVerdict) -> str:
    return "ready" if verdict.ready else "unready"

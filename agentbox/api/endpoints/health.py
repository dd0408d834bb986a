"""The state of each part of the box, for people."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from agentbox import __version__
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.boot_facts import BootFacts
from agentbox.api.mesh.mesh_role import MeshRole
from agentbox.box.readiness.box_requirements import BoxRequirements
from agentbox.box.readiness.evaluator import Evaluator, ReadinessVerdict
from agentbox.box.supervision.boot_record import PostureDrift
from agentbox.core import clock

NOTE = "for people; probes use /ready"


class DriftRows(Protocol):
    """The current drift."""

    @property
    def rows(self) -> Sequence[PostureDrift]: ...


class DrainStatus(Protocol):
    """Whether the box drains."""

    @property
    def started(self) -> bool: ...


class HealthReporter:
    """The body of `/health`. `ready_once` is set once the box was ready; `dev`: a box with sources
    in it.
    """

    def __init__(
        self,
        uptime: Callable[[], float],
        boot: BootFacts,
        evaluator: Evaluator,
        requirements: BoxRequirements,
        slots: Slots,
        mesh: MeshRole,
        drift: DriftRows,
        drain: DrainStatus,
        ready_once: asyncio.Event,
        *,
        dev: bool,
    ) -> None:
        self._uptime, self._boot, self._evaluator = uptime, boot, evaluator
        self._requirements, self._slots, self._mesh = requirements, slots, mesh
        self._drift, self._drain, self._ready_once, self._dev = drift, drain, ready_once, dev

    def report(self) -> Mapping[str, Any]:
        adapters = _slots(self._slots)
        degraded = sorted(
            slot
            for slot, row in adapters.items()
            if row["state"] in ("degraded", "down", "connecting")
        )
        if self._mesh.degraded:
            degraded.append("mesh")
        return {
            "status": self._status(self._evaluator.verdict, len(degraded)),
            "uptime": self._uptime(),
            "version": __version__,
            "image": image_info(self._boot),
            "adapters": adapters,
            "degraded_count": len(degraded),
            "mesh": self._mesh.health(),
            "programs": dict(self._requirements.programs.states),
            "artifacts": {"failed": list(self._requirements.artifacts.failed)},
            "posture": {
                "drift": [
                    f"{row.control}: {row.found} (expected {row.expected})"
                    for row in self._drift.rows
                ]
            },
            "protections_absent": list(self._boot.protections_absent),
            "dev": self._dev,
            "note": NOTE,
        }

    def _status(self, verdict: ReadinessVerdict, degraded: int) -> str:
        if self._drain.started:
            return "draining"
        if not verdict.ready and verdict.since is None and not self._ready_once.is_set():
            return "starting"
        return "ok" if verdict.ready and not degraded else "degraded"


def _slots(slots: Slots) -> dict[str, dict[str, Any]]:
    return {
        slot: {
            "state": row.state,
            "impl": row.impl,
            "required": row.required,
            "since": clock.to_wire(row.since),
            "detail": row.detail,
        }
        for slot, row in slots.status().items()
    }


def image_info(boot: BootFacts) -> dict[str, Any]:
    """The image of this box."""
    return {
        "ref": boot.image_ref,
        "digest": boot.digests.get("image"),
        "revision": boot.revision,
        "closure_digest": boot.digests.get("closure"),
    }

"""Identity and configuration of this box."""

from collections.abc import Mapping
from typing import Any

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.registry import resolve
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.background.boot_watch import BootWatch
from agentbox.api.boot_facts import BootFacts
from agentbox.api.endpoints.health import image_info
from agentbox.api.plan_source import PlanSource


class MetaReporter:
    """The body of `/v1/meta`."""

    def __init__(self, plans: PlanSource, boot: BootFacts, slots: Slots, watch: BootWatch) -> None:
        self._plans, self._boot, self._slots, self._watch = plans, boot, slots, watch

    def report(self) -> Mapping[str, Any]:
        boot, plan = self._boot, self._plans.current
        self._watch.read_seal()
        return {
            "name": plan.name,
            "version": plan.version,
            "image": image_info(boot),
            "manifest_digest": boot.digests.get("manifest") or plan.digests.manifest,
            "plan_digest": boot.plan_digest,
            "lock_digest": plan.digests.lock,
            "system": plan.system,
            "mesh": {"mode": plan.mesh.mode},
            "adapters": self._contracts(),
            "observability": {
                "metrics_endpoint": f":{plan.observability.metrics_port}/metrics",
                "metrics_port": plan.observability.metrics_port,
                "otlp": bool(plan.observability.otlp_endpoint),
                "log_level": plan.observability.log_level,
            },
            "security": {
                "exceptions": [delta.key for delta in plan.exceptions],
                "seccomp_digest": plan.digests.seccomp,
            },
            "boot": {
                "id": boot.boot_id,
                "sealed_at": self._watch.sealed_at,
                "elapsed_seconds": self._watch.sealed_after,
                "previous_shutdown": boot.previous_shutdown,
            },
            "api_versions": ["v1"],
        }

    def _contracts(self) -> dict[str, dict[str, Any]]:
        plan = self._plans.current
        return {
            slot: {
                "impl": row.use,
                "required": row.required,
                "contract_version": resolve(slot, row.use).contract_version,
                "capabilities": sorted(self._slots.capabilities(slot)),
            }
            for slot, row in ((slot, plan.slots[slot]) for slot in SLOTS)
        }

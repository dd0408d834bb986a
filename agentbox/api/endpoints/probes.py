"""The probe routes: each response is made from cached results, never from a check."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from agentbox import __version__
from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.registry import resolve
from agentbox.api.http.request import ApiRequest
from agentbox.api.metrics.exposition import expose
from agentbox.api.services import Services
from agentbox.box.readiness.evaluator import Verdict
from agentbox.core import clock
from agentbox.core.http.responses import RecordResponse, header_list

NOTE = "for people; probes use /ready"


async def livez(request: ApiRequest) -> Mapping[str, Any]:
    """Reached only for unusual requests; the application answers the others directly."""
    return {"live": True, "uptime": request.services.uptime}


async def ready(request: ApiRequest) -> Mapping[str, Any] | Response:
    """The cached verdict: 200, or 503 with the missing requirements."""
    services, verdict = request.services, request.services.evaluator.verdict
    common = {
        "degraded": list(verdict.degraded),
        "boot_id": services.boot.boot_id,
        "plan_digest": services.boot.plan_digest,
        "checked_at": clock.to_wire(verdict.checked_at),
    }
    if verdict.ready:
        since = clock.to_wire(verdict.since) if verdict.since else None
        body = {"ready": True, "since": since, "requirements": list(verdict.requirements)}
        return {**body, **common, "evidence": dict(verdict.evidence)}
    missing = list(verdict.missing)
    reason = f"{len(missing)} requirement{'' if len(missing) == 1 else 's'} not met"
    refusal = {"ready": False, "reason": reason, "missing": missing, **common}
    return RecordResponse(refusal, 503, header_list(("Retry-After", "1")))


async def health(request: ApiRequest) -> Mapping[str, Any]:
    services = request.services
    adapters = _slots(services)
    degraded = sorted(
        slot for slot, row in adapters.items() if row["state"] in ("degraded", "down", "connecting")
    )
    if services.mesh.degraded:
        degraded.append("mesh")
    boot = services.boot
    return {
        "status": _status(services, services.evaluator.verdict, len(degraded)),
        "uptime": services.uptime,
        "version": __version__,
        "image": _image(services),
        "adapters": adapters,
        "degraded_count": len(degraded),
        "mesh": services.mesh.health(),
        "programs": dict(services.requirements.programs.states),
        "artifacts": {"failed": list(services.requirements.artifacts.failed)},
        "posture": {
            "drift": [
                f"{row.control}: {row.found} (expected {row.expected})"
                for row in services.drift.rows
            ]
        },
        "protections_absent": list(boot.protections_absent),
        "dev": services.plan.dev,
        "note": NOTE,
    }


def _status(services: Services, verdict: Verdict, degraded: int) -> str:
    if services.drain.started:
        return "draining"
    if not verdict.ready and verdict.since is None and not services.background.was_ready:
        return "starting"
    return "ok" if verdict.ready and not degraded else "degraded"


def _slots(services: Services) -> dict[str, dict[str, Any]]:
    return {
        slot: {
            "state": row.state,
            "impl": row.impl,
            "required": row.required,
            "since": clock.to_wire(row.since),
            "detail": row.detail,
        }
        for slot, row in services.slots.status().items()
    }


def _image(services: Services) -> dict[str, Any]:
    boot = services.boot
    return {
        "ref": boot.image_ref,
        "digest": boot.digests.get("image"),
        "revision": boot.revision,
        "closure_digest": boot.digests.get("closure"),
    }


async def meta(request: ApiRequest) -> Mapping[str, Any]:
    services, boot, plan = request.services, request.services.boot, request.services.plan
    services.background.read_seal()
    return {
        "name": plan.name,
        "version": plan.version,
        "image": _image(services),
        "manifest_digest": boot.digests.get("manifest") or plan.digests.manifest,
        "plan_digest": boot.plan_digest,
        "lock_digest": plan.digests.lock,
        "system": plan.system,
        "mesh": {"mode": plan.mesh.mode},
        "adapters": _adapter_contracts(services),
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
            "sealed_at": services.background.sealed_at,
            "elapsed_seconds": services.background.sealed_after,
            "previous_shutdown": boot.previous_shutdown,
        },
        "api_versions": ["v1"],
    }


def _adapter_contracts(services: Services) -> dict[str, dict[str, Any]]:
    return {
        slot: {
            "impl": row.use,
            "required": row.required,
            "contract_version": resolve(slot, row.use).contract_version,
            "capabilities": sorted(services.slots.capabilities(slot)),
        }
        for slot, row in ((slot, services.plan.slots[slot]) for slot in SLOTS)
    }


async def metrics(request: ApiRequest) -> Response:
    body, media_type = expose(request.services.registry, request.headers.get("accept", ""))
    return Response(body, media_type=media_type)

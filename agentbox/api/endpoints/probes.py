"""The probe routes: each response is made from cached results, never from a check."""

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.responses import Response

from agentbox.api.boot_facts import BootFacts
from agentbox.api.endpoints.health import HealthReporter
from agentbox.api.endpoints.meta import MetaReporter
from agentbox.api.http.request import ApiRequest
from agentbox.api.metrics.exposition import expose
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.core import clock
from agentbox.core.http.responses import RecordResponse, header_list


class ProbeHandlers:
    """Public, and fast while everything else is slow."""

    def __init__(
        self,
        uptime: Callable[[], float],
        boot: BootFacts,
        evaluator: Evaluator,
        health: HealthReporter,
        meta: MetaReporter,
        registry: CollectorRegistry,
    ) -> None:
        self._uptime, self._boot, self._evaluator = uptime, boot, evaluator
        self._health, self._meta, self._registry = health, meta, registry

    async def livez(self) -> Mapping[str, Any]:
        """Reached only for unusual requests; the application answers the others directly."""
        return {"live": True, "uptime": self._uptime()}

    async def ready(self) -> Mapping[str, Any] | Response:
        """The cached verdict: 200, or 503 with the missing requirements."""
        verdict = self._evaluator.verdict
        common = {
            "degraded": list(verdict.degraded),
            "boot_id": self._boot.boot_id,
            "plan_digest": self._boot.plan_digest,
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

    async def health(self) -> Mapping[str, Any]:
        return self._health.report()

    async def meta(self) -> Mapping[str, Any]:
        return self._meta.report()

    async def metrics(self, request: ApiRequest) -> Response:
        body, media_type = expose(self._registry, request.headers.get("accept", ""))
        return Response(body, media_type=media_type)

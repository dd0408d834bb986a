"""Puts the API together: the one place of this program where concrete things are built."""

from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.adapter import Clock, Deps, SlotName, SystemClock
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import container_of
from agentbox.adapters.runtime.timing import Timing
from agentbox.api.auth.access import Access
from agentbox.api.auth.tokens import NamedTokens
from agentbox.api.background.drift import DriftWatch
from agentbox.api.background.test_hooks import hooked
from agentbox.api.background.watch import Watch
from agentbox.api.boot_facts import facts_of
from agentbox.api.mesh.membership import Membership, clock_scale, enrolment_token, host_of
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.services import Services
from agentbox.api.tasks.runner import Tasks
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.readiness.standard import proves_sandbox, standard_requirements
from agentbox.box.supervision.applied import in_force
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.secrets import find_token
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import MODELS_TOLD

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Container
    from agentbox.adapters.runtime.spans import Spans
    from agentbox.mesh.outbox.outbox import Outbox


def build(plan: Plan, paths: Paths, record: BootRecord | None, *, clock: Clock | None = None) -> Services:
    """Everything, not yet started. `plan` is the one that the box booted with: digests are of it, and what was applied
    since counts for the rest; `clock` is that of the slots. Raises AgentboxError for a plan that this release cannot serve."""
    if plan.api.auth != "token":
        raise AgentboxError(
            f"cannot serve api.auth = {plan.api.auth}: this release knows token", "Set api.auth = token."
        )
    boot, applied = facts_of(record, plan, paths), in_force(paths, plan)
    registry, http = CollectorRegistry(), HttpMetrics()
    registry.register(http)
    metrics = BoxMetrics(
        registry,
        plan_digest=boot.plan_digest,
        image_digest=boot.digests.get("image") or "",
        models=paths.run / MODELS_TOLD,
    )
    metrics.unclean.set(boot.previous_shutdown == "unclean")
    mesh, hook = Membership(plan), hooked(boot.hooks)

    async def before_open(slot: SlotName) -> None:
        await hook(slot)
        await mesh.before_open(slot)

    container = container_of(
        applied, paths, Deps(metrics=Metrics(registry), before_open=before_open, clock=clock or SystemClock()), timing=_timing(boot.hooks.clock_scale),
        secrets=lambda slot: slot_secrets(paths, applied.slots[slot].options), spans=_spans(plan), on_change=lambda: services.evaluator.wake("adapters"),
    )  # fmt: skip
    tokens, outbox = NamedTokens(paths), _outbox(plan, paths, container, registry)
    if mesh.mode == "host":
        mesh.host = host_of(
            lambda: services.plan, paths, container.journal.record_soon, registry, clock_scale(plan, boot)
        )
    services = Services(
        plan=applied, paths=paths, boot=boot, access=_access(plan, paths, tokens, mesh), registry=registry,
        http=http, metrics=metrics, container=container, tasks=Tasks(applied, paths, container, outbox), tokens=tokens, mesh=mesh, outbox=outbox,
    )  # fmt: skip
    if mesh.mode == "client":
        from agentbox.api.mesh.joining import client_of  # costs start time, and is for clients only

        mesh.client = client_of(services)
    services.watch, services.drift = Watch(services), DriftWatch(services)
    services.standard = standard_requirements(
        paths, plan, boot_id=boot.boot_id, slots=lambda: {**{str(slot): status for slot, status in container.status().items()}, **mesh.slots()}, hooks=boot.hooks,
        canaries=(lambda: services.watch.canaries.report) if proves_sandbox(plan) else None,
        recorded_sentinel=lambda: services.watch.sealed_sha256,
        on_shutdown=lambda: _nothing(services.drain.begin("supervisord shuts down")),
    )  # fmt: skip
    services.evaluator = Evaluator(
        services.standard.all, lambda old, new: services.watch.changed(old, new), clock_scale=boot.hooks.clock_scale
    )
    return services


def _timing(clock_scale: float) -> Timing:
    """A test's clock scales waits, not the time in which agent-host starts: opening keeps at least 2 s."""
    scaled = Timing().scaled(1 / clock_scale)
    return replace(scaled, open=max(scaled.open, 2.0))


def _nothing(_: object) -> None:
    """The drain runs by itself."""


def _outbox(plan: Plan, paths: Paths, container: "Container", registry: CollectorRegistry) -> "Outbox | None":
    """Where beads are shared with other boxes; its library is imported there alone."""
    if not plan.slots["beads"].use.startswith("external-"):
        return None
    from agentbox.mesh.outbox.metrics import watch
    from agentbox.mesh.outbox.outbox import Outbox

    outbox = Outbox(paths.slot("mesh"), container.journal.record_soon)
    watch(outbox, registry)
    return outbox


def _access(plan: Plan, paths: Paths, tokens: NamedTokens, mesh: Membership) -> Access:
    return Access(
        paths, _token(plan, paths), tokens.caller, sessions=mesh.caller, ended=mesh.once_caller,
        enrolment=enrolment_token(plan, paths) if mesh.mode == "host" else "",
    )  # fmt: skip


def _token(plan: Plan, paths: Paths) -> str:
    token = find_token(paths, plan)
    if token is None:
        raise AgentboxError(
            f"cannot serve the API: there is no admin token, not even {paths.api_key}",
            "Phase 2 of the boot makes one; `agentbox boot explain` shows whether it ran.",
        )
    return token.value


def _spans(plan: Plan) -> "Spans | None":
    """Tracing is imported only where an endpoint is configured: it costs start time."""
    if not plan.observability.otlp_endpoint:
        return None
    from agentbox.api.tracing import spans_to

    return spans_to(plan.observability.otlp_endpoint, plan.name)

"""The composition root of the API: builds all concrete objects."""

from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.adapter import Clock, Deps, SlotName, SystemClock
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import create_slots
from agentbox.adapters.runtime.timing import Timing
from agentbox.api.auth.access import Authenticator
from agentbox.api.auth.tokens import TokenStore
from agentbox.api.background.test_hooks import slot_open_hook
from agentbox.api.boot_facts import load_boot_facts
from agentbox.api.mesh.mesh_role import MeshRole, clock_scale, enrolment_token, make_mesh_host
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.plan_source import PlanSource
from agentbox.api.services import Services
from agentbox.api.tasks.runner import TaskRunner
from agentbox.box.readiness.box_requirements import make_requirements, proves_sandbox
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.supervision.applied_plan import plan_in_force
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.secrets import find_token
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import MODEL_METRICS_FILE

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.adapters.runtime.spans import Tracing
    from agentbox.mesh.outbox.outbox import Outbox


def build(
    plan: Plan, paths: Paths, record: BootRecord | None, *, clock: Clock | None = None
) -> Services:
    """Builds all objects without starting them. `plan` is the plan of the boot: digests refer to
    it; otherwise the plan applied since is used. `clock` is the clock of the slots. Raises
    AgentboxError for a plan that this release cannot serve.
    """
    if plan.api.auth != "token":
        raise AgentboxError(
            f"cannot serve api.auth = {plan.api.auth}: this release supports token only",
            "Set api.auth = token.",
        )
    boot, applied = load_boot_facts(record, plan, paths), plan_in_force(paths, plan)
    plans = PlanSource(applied)
    registry, http = CollectorRegistry(), HttpMetrics()
    registry.register(http)
    metrics = BoxMetrics(
        registry,
        plan_digest=boot.plan_digest,
        image_digest=boot.digests.get("image") or "",
        models=paths.run / MODEL_METRICS_FILE,
    )
    metrics.unclean.set(boot.previous_shutdown == "unclean")
    mesh, hook = MeshRole(plan), slot_open_hook(boot.hooks)

    async def before_open(slot: SlotName) -> None:
        await hook(slot)
        await mesh.before_open(slot)

    slots = create_slots(
        applied,
        paths,
        Deps(metrics=Metrics(registry), before_open=before_open, clock=clock or SystemClock()),
        timing=_timing(boot.hooks.clock_scale),
        secrets=lambda slot: slot_secrets(paths, applied.slots[slot].options),
        spans=_spans(plan),
        on_change=lambda: services.evaluator.wake("adapters"),
    )
    tokens, outbox = TokenStore(paths), _outbox(plan, paths, slots, registry)
    if mesh.mode == "host":
        mesh.host = make_mesh_host(
            lambda: plans.current,
            paths,
            slots.journal.record_soon,
            registry,
            clock_scale(plan, boot),
        )
    services = Services(
        plans=plans,
        paths=paths,
        boot=boot,
        authenticator=_access(plan, paths, tokens, mesh),
        registry=registry,
        http=http,
        metrics=metrics,
        slots=slots,
        tasks=TaskRunner(applied, paths, slots, outbox),
        tokens=tokens,
        mesh=mesh,
        outbox=outbox,
    )
    if mesh.mode == "client":
        from agentbox.api.mesh.client_setup import (
            make_mesh_client,
        )  # costs start time, and only clients need it

        mesh.client = make_mesh_client(services)
    services.requirements = make_requirements(
        paths,
        plan,
        boot_id=boot.boot_id,
        slots=lambda: {
            **{str(slot): status for slot, status in slots.status().items()},
            **mesh.slots(),
        },
        hooks=boot.hooks,
        canaries=(lambda: services.background.canaries.report) if proves_sandbox(plan) else None,
        recorded_sentinel=lambda: services.background.sealed_sha256,
        on_shutdown=lambda: _ignore(services.drain.begin("supervisord is shutting down")),
    )
    services.evaluator = Evaluator(
        services.requirements.all,
        lambda old, new: services.background.on_verdict_change(old, new),
        clock_scale=boot.hooks.clock_scale,
    )
    plans.subscribe(services.tasks.apply_plan)
    plans.subscribe(lambda _: services.drift.wake())
    return services


def _timing(clock_scale: float) -> Timing:
    """A test's clock scales waits, but not the start time of agent-host: opening keeps at least 2
    s.
    """
    scaled = Timing().scaled(1 / clock_scale)
    return replace(scaled, open=max(scaled.open, 2.0))


def _ignore(_: object) -> None:
    """The drain runs as its own task."""


def _outbox(
    plan: Plan, paths: Paths, slots: "Slots", registry: CollectorRegistry
) -> "Outbox | None":
    """The outbox, where beads are shared with other boxes; only then its library is imported."""
    if not plan.slots["beads"].use.startswith("external-"):
        return None
    from agentbox.mesh.outbox.metrics import register_metrics
    from agentbox.mesh.outbox.outbox import Outbox

    outbox = Outbox(paths.slot("mesh"), slots.journal.record_soon)
    register_metrics(outbox, registry)
    return outbox


def _access(plan: Plan, paths: Paths, tokens: TokenStore, mesh: MeshRole) -> Authenticator:
    return Authenticator(
        paths,
        _token(plan, paths),
        tokens.find_caller,
        sessions=mesh.find_caller,
        ended_sessions=mesh.find_ended_caller,
        enrolment=enrolment_token(plan, paths) if mesh.mode == "host" else "",
    )


def _token(plan: Plan, paths: Paths) -> str:
    token = find_token(paths, plan)
    if token is None:
        raise AgentboxError(
            f"cannot serve the API: no admin token found, {paths.api_key} does not exist",
            "Run `agentbox boot explain` to see whether phase 2 of the boot generated one.",
        )
    return token.value


def _spans(plan: Plan) -> "Tracing | None":
    """Tracing is imported only with a configured endpoint: it costs start time."""
    if not plan.observability.otlp_endpoint:
        return None
    from agentbox.api.tracing import make_spans

    return make_spans(plan.observability.otlp_endpoint, plan.name)

"""The composition root of the API: builds all objects, each from those before it. What would be a
tie in both directions is a subscription.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from agentbox.adapters.events.search.index import EventIndex
from agentbox.adapters.runtime.adapter import Clock, Deps, SystemClock
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots, create_slots
from agentbox.api.access_setup import Access, make_access
from agentbox.api.background.apply import ManifestApplier
from agentbox.api.background.background_work import BackgroundWork
from agentbox.api.background.boot_events import BootEvents
from agentbox.api.background.boot_watch import BootWatch
from agentbox.api.background.drain import Drain, SlotShutdown
from agentbox.api.background.drift import DriftWatcher
from agentbox.api.background.jobs import make_jobs
from agentbox.api.background.readiness_changes import ReadinessChanges
from agentbox.api.background.sandbox_canaries import SandboxCanaryWatcher
from agentbox.api.background.test_hooks import slot_open_hook
from agentbox.api.backups.setup import make_backups
from agentbox.api.boot_facts import load_boot_facts
from agentbox.api.endpoints.backups import BackupHandlers
from agentbox.api.endpoints.box import BoxHandlers
from agentbox.api.endpoints.generation import GenerationHandlers
from agentbox.api.endpoints.health import HealthReporter
from agentbox.api.endpoints.mcp import McpHandlers
from agentbox.api.endpoints.mesh import MeshHandlers
from agentbox.api.endpoints.meta import MetaReporter
from agentbox.api.endpoints.pages import PageHandlers
from agentbox.api.endpoints.probes import ProbeHandlers
from agentbox.api.endpoints.sessions import SessionHandlers
from agentbox.api.endpoints.skills import SkillHandlers
from agentbox.api.endpoints.tasks import TaskHandlers
from agentbox.api.endpoints.usage import UsageHandlers
from agentbox.api.hold import Hold
from agentbox.api.http.asgi import ApplicationFactory
from agentbox.api.http.handler import EndpointGroup
from agentbox.api.http.livez import Uptime
from agentbox.api.mesh.host_setup import enrolment_token, make_mesh_host
from agentbox.api.mesh.mesh_role import MeshRole, mesh_slots
from agentbox.api.mesh.outbox_setup import make_outbox
from agentbox.api.mesh.session_callers import SessionCallers
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.model_usage import ModelUsageReader
from agentbox.api.plan_source import PlanSource
from agentbox.api.session_host import session_host_of
from agentbox.api.session_usage import SessionUsageReader
from agentbox.api.slot_endpoints import slot_groups
from agentbox.api.slot_opening_gates import SlotOpeningGates
from agentbox.api.tasks.runner import TaskRunner
from agentbox.box.readiness.box_requirements import make_requirements, proves_sandbox
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.supervision.applied_plan import plan_in_force
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.secrets import find_token
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.core.errors import AgentboxError
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.gateway.llm.call_sums import CallSums
from agentbox.plan.model import Plan
from agentbox.plan.names import GATEWAY, MODEL_METRICS_FILE
from agentbox.policy.outgoing import Outgoing

if TYPE_CHECKING:
    from agentbox.adapters.runtime.spans import Tracing
    from agentbox.mesh.outbox.outbox import Outbox


@frozen
class Api:
    """What the program starts and stops, and the applications of its two listeners. `groups` serve
    the resources; `ready_once` is set when the box is ready for the first time, `closing` when
    streams must end.
    """

    paths: Paths
    boot_id: str
    plans: PlanSource
    slots: Slots
    access: Access
    outbox: "Outbox | None"
    mesh: MeshRole
    tasks: TaskRunner
    hold: Hold
    evaluator: Evaluator
    background: BackgroundWork
    shutdown: SlotShutdown
    drain: Drain
    groups: Mapping[str, EndpointGroup]
    api: Starlette
    metrics: Starlette
    ready_once: asyncio.Event
    closing: asyncio.Event


def build(
    plan: Plan, paths: Paths, record: BootRecord | None, *, clock: Clock | None = None
) -> Api:
    """Builds all objects, starting none. `plan` is that of the boot: digests refer to it; otherwise
    the plan applied since is used. `clock` is that of the slots. Raises AgentboxError for a plan
    that this release cannot serve."""
    if plan.api.auth != "token":
        raise AgentboxError(
            f"cannot serve api.auth = {plan.api.auth}: this release supports token only",
            "Set api.auth = token.",
        )
    boot, plans = load_boot_facts(record, plan, paths), PlanSource(plan_in_force(paths, plan))
    uptime, ready_once, closing = Uptime(), asyncio.Event(), asyncio.Event()
    hold = Hold(paths)
    boot_log = BootEventLog(paths, boot.boot_id, boot.plan_digest, boot.image_ref)

    registry, http_metrics = CollectorRegistry(), HttpMetrics()
    registry.register(http_metrics)
    metrics = BoxMetrics(
        registry,
        plan_digest=boot.plan_digest,
        image_digest=boot.digests.get("image") or "",
        models=paths.run / MODEL_METRICS_FILE,
    )
    metrics.unclean.set(boot.previous_shutdown == "unclean")

    gates = SlotOpeningGates(slot_open_hook(boot.hooks))
    slots = _slots(plans.current, paths, gates, registry, clock, boot.hooks.clock_scale, hold)
    outbox = make_outbox(plan, paths, slots, registry)
    mesh_host = make_mesh_host(plans, paths, boot, slots.journal, registry)
    access = make_access(
        plans.current,
        paths,
        admin_token=_admin_token(plan, paths),
        enrolment=enrolment_token(plan, paths) if mesh_host is not None else "",
        sessions=SessionCallers(mesh_host),
        journal=slots.journal,
        registry=registry,
        hold=hold,
    )
    tasks = TaskRunner(plans.current, paths, slots, outbox)
    plans.subscribe(tasks.apply_plan)

    boot_events = BootEvents(paths, plan.name, boot.boot_id, slots.events)
    canaries = SandboxCanaryWatcher(paths)
    requirements = make_requirements(
        paths,
        plan,
        boot_id=boot.boot_id,
        slots=lambda: {
            **{str(slot): status for slot, status in slots.status().items()},
            **mesh_slots(mesh_host),
        },
        hooks=boot.hooks,
        canaries=(lambda: canaries.report) if proves_sandbox(plan) else None,
        recorded_sentinel=lambda: boot_events.sealed_sha256,
    )
    evaluator = Evaluator(requirements.all, clock_scale=boot.hooks.clock_scale)
    changes = ReadinessChanges(evaluator, metrics, boot_log, ready_once)
    evaluator.subscribe(changes.record)
    slots.subscribe(partial(evaluator.wake, "adapters"))
    if requirements.sandbox is not None:
        canaries.subscribe(partial(evaluator.wake, "sandbox"))
    mesh_client = None
    if plan.mesh.mode == "client":
        # Costs start time, and only clients need it.
        from agentbox.api.mesh.client_setup import make_mesh_client

        mesh_client = make_mesh_client(plans, paths, boot, slots, evaluator, outbox, registry)
        gates.add(mesh_client.slots.before_open)
    mesh = MeshRole(plan.mesh.mode, mesh_host, mesh_client)
    has_journal = plan.slots["events"].use != "off"
    watch = BootWatch(
        paths, boot.boot_id, boot_events, requirements.programs, metrics, imports=has_journal
    )
    drift = DriftWatcher(plans, paths, boot, metrics.drift, boot_log)
    plans.subscribe(lambda _plan: drift.wake())
    session_host = session_host_of(plan, paths)
    index = EventIndex(paths.slot("events") / "search.db")
    jobs = make_jobs(
        plans, paths, boot.boot_id, slots, metrics, canaries, session_host, ready_once, index, hold
    )
    backups = make_backups(paths, plans, slots, registry, ready_once if boot.boot_id else None)
    jobs = {**jobs, "backups": backups.maker.run}
    jobs |= {name: hold.after(job) for name, job in backups.jobs.items()}
    background = BackgroundWork(watch, drift if boot.boot_id else None, jobs)
    shutdown = SlotShutdown(background, mesh, slots)
    drain = Drain(evaluator, tasks, slots, shutdown, plans, boot_log, closing)
    requirements.draining.subscribe(partial(drain.begin, "supervisord is shutting down"))
    health = HealthReporter(
        uptime,
        boot,
        evaluator,
        requirements,
        slots,
        mesh,
        drift,
        drain,
        ready_once,
        dev=plan.dev,
    )
    meta = MetaReporter(plans, boot, slots, watch)
    calls = CallSums(paths.slot(GATEWAY))
    models = ModelUsageReader(calls)
    used = SessionUsageReader(slots.orchestrator, models)
    applier = ManifestApplier(paths, plans, slots, mesh.overlay)
    groups = {
        **slot_groups(slots, plans, models, index, closing),
        "probes": EndpointGroup(ProbeHandlers(uptime, boot, evaluator, health, meta, registry)),
        "box": EndpointGroup(BoxHandlers(paths, drain, applier)),
        "pages": EndpointGroup(PageHandlers()),
        "usage": EndpointGroup(UsageHandlers(calls, session_host)),
        "tasks": EndpointGroup(TaskHandlers(tasks, closing)),
        "skills": EndpointGroup(SkillHandlers(paths, plans)),
        "sessions": EndpointGroup(SessionHandlers(session_host, used, closing)),
        "mcp": EndpointGroup(McpHandlers(paths, plans)),
        **access.groups,
        "backups": EndpointGroup(BackupHandlers(paths, plans, backups.maker, backups.verifier)),
        "mesh": EndpointGroup(MeshHandlers(mesh, outbox)),
        "generation": EndpointGroup(GenerationHandlers(paths, slots, hold)),
    }
    applications = ApplicationFactory(access.guards, plans, groups, uptime, http_metrics)
    return Api(
        paths=paths,
        boot_id=boot.boot_id,
        plans=plans,
        slots=slots,
        access=access,
        outbox=outbox,
        mesh=mesh,
        tasks=tasks,
        hold=hold,
        evaluator=evaluator,
        background=background,
        shutdown=shutdown,
        drain=drain,
        groups=groups,
        api=applications.make("api"),
        metrics=applications.make("metrics"),
        ready_once=ready_once,
        closing=closing,
    )


def _slots(
    plan: Plan,
    paths: Paths,
    gates: SlotOpeningGates,
    registry: CollectorRegistry,
    clock: Clock | None,
    scale: float,
    hold: Hold,
) -> Slots:
    """A test's clock scales waits, but not the start time of agent-host: opening keeps at least 2
    s.
    """
    timing = LifecycleTiming().scaled(1 / scale)
    return create_slots(
        plan,
        paths,
        Deps(
            metrics=Metrics(registry),
            clock=clock or SystemClock(),
            before_open=gates,
            may_send=hold.wait,
        ),
        timing=replace(timing, open=max(timing.open, 2.0)),
        secrets=lambda slot: slot_secrets(paths, plan.slots[slot].options),
        spans=_spans(plan, paths),
    )


def _admin_token(plan: Plan, paths: Paths) -> str:
    token = find_token(paths, plan)
    if token is None:
        raise AgentboxError(
            f"cannot serve the API: no admin token found, {paths.api_key} does not exist",
            "Run `agentbox boot explain` to see whether phase 2 of the boot generated one.",
        )
    return token.value


def _spans(plan: Plan, paths: Paths) -> "Tracing | None":
    """Tracing is imported only with a configured endpoint: it costs start time."""
    if not plan.observability.otlp_endpoint:
        return None
    from agentbox.api.tracing import make_spans

    return make_spans(plan.observability.otlp_endpoint, plan.name, Outgoing.read(paths))

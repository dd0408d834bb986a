"""Builds a mesh host, and what hosts and clients read of the box."""

from typing import TYPE_CHECKING

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.boot_facts import BootFacts
from agentbox.api.plan_source import PlanSource
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.core.paths import Paths, environment
from agentbox.core.records.plain import to_plain
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.mesh.host.host import Host

SCALE_HOOK = "AGENTBOX_TEST_CLOCK_SCALE"


def make_mesh_host(
    plans: PlanSource,
    paths: Paths,
    boot: BootFacts,
    journal: BestEffortJournal,
    registry: "CollectorRegistry",
) -> "Host | None":
    """None unless the mode is host; its modules are imported only then."""
    if plans.current.mesh.mode != "host":
        return None
    from agentbox.mesh.host.host import Host
    from agentbox.mesh.host.session_store import SessionStore
    from agentbox.mesh.metrics import HostMetrics

    store, metrics = SessionStore(paths.slot("mesh")), HostMetrics(registry)
    scale = clock_scale(plans.current, boot)
    return Host(lambda: plans.current, store, metrics, journal.record_soon, scale=scale)


def enrolment_token(plan: Plan, paths: Paths) -> str:
    """The token with which boxes join a host; "" without one. Raises AgentboxError for an
    unreadable file.
    """
    return slot_secrets(paths, to_plain(plan.mesh)).get("token", "")


def clock_scale(plan: Plan, boot: BootFacts) -> float:
    """The divisor of mesh times: 1 except in a test image. Without a boot the environment sets
    it.
    """
    if not boot.boot_id and plan.test_hooks:
        return float(environment().get(SCALE_HOOK) or 1)
    return boot.hooks.clock_scale

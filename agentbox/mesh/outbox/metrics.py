"""Gauges of the outbox."""

from prometheus_client import CollectorRegistry, Gauge

from agentbox.mesh.outbox.outbox import Outbox


def register_metrics(outbox: Outbox, registry: CollectorRegistry) -> None:
    """Registers gauges of depth, bytes and age."""
    for name, description, value in (
        ("depth", "Results waiting for the bead store", lambda: float(outbox.depth)),
        ("bytes", "Total size of the waiting results", lambda: float(outbox.size)),
        ("oldest_seconds", "Age of the oldest waiting result", lambda: outbox.oldest_s),
    ):
        Gauge(f"agentbox_mesh_outbox_{name}", description, registry=registry).set_function(value)

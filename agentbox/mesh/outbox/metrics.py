"""Gauges of the outbox."""

from prometheus_client import CollectorRegistry, Gauge

from agentbox.mesh.outbox.outbox import Outbox


def register_metrics(outbox: Outbox, registry: CollectorRegistry) -> None:
    """From now on the registry tells depth, bytes and age."""
    for name, description, value in (
        ("depth", "Results that wait for the store of beads", lambda: float(outbox.depth)),
        ("bytes", "Size of what waits", lambda: float(outbox.size)),
        ("oldest_seconds", "Age of the oldest that waits", lambda: outbox.oldest_s),
    ):
        Gauge(f"agentbox_mesh_outbox_{name}", description, registry=registry).set_function(value)

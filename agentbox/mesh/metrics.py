"""Prometheus metrics of the mesh."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from agentbox.mesh.client.transitions import STATES

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class HostMetrics:
    """Metrics of a host; one object per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sessions = Gauge(
            "agentbox_mesh_sessions", "Sessions by state", ("state",), registry=registry
        )
        self.evictions = Counter(
            "agentbox_mesh_evictions",
            "Sessions ended by the host",
            ("reason",),
            registry=registry,
        )
        self.registrations = Counter(
            "agentbox_mesh_register", "Registrations", ("outcome",), registry=registry
        )
        self.heartbeats = Counter("agentbox_mesh_beats", "Beats", ("outcome",), registry=registry)
        self.heartbeat_seconds = Histogram(
            "agentbox_mesh_beat_seconds",
            "Duration of a heartbeat",
            buckets=BUCKETS,
            registry=registry,
        )


class ClientMetrics:
    """Metrics of a client; one object per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = Gauge(
            "agentbox_mesh_state",
            "1 for the current state of the client",
            ("state",),
            registry=registry,
        )
        self._transitions = Counter(
            "agentbox_mesh_transitions",
            "State transitions of the client",
            ("from", "to"),
            registry=registry,
        )
        self.registrations = Counter(
            "agentbox_mesh_register", "Registrations", ("outcome",), registry=registry
        )
        self.heartbeats = Counter("agentbox_mesh_beats", "Beats", ("outcome",), registry=registry)
        self.heartbeat_seconds = Histogram(
            "agentbox_mesh_beat_seconds",
            "Duration of a heartbeat",
            buckets=BUCKETS,
            registry=registry,
        )
        self.skew = Gauge(
            "agentbox_mesh_clock_skew_seconds",
            "Clock of the host minus the local clock",
            registry=registry,
        )

    def set_state(self, state: str) -> None:
        """Sets the current state."""
        for name in STATES:
            self._state.labels(name).set(name == state)

    def record_transition(self, old: str, new: str) -> None:
        """Counts a transition and sets the new state."""
        self._transitions.labels(old, new).inc()
        self.set_state(new)

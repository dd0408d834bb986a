"""The metrics of the slots."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Create one object per registry; a second one raises ValueError."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = target = registry or CollectorRegistry()
        self.health = Gauge(
            "agentbox_adapter_health",
            "0 down, 1 ready, 2 degraded or off",
            ("slot", "impl"),
            registry=target,
        )
        self.state = Gauge(
            "agentbox_adapter_state",
            "1 for the state that a slot is in",
            ("slot", "state"),
            registry=target,
        )
        self.transitions = Counter(
            "agentbox_adapter_transitions",
            "Changes of state of a slot",
            ("slot", "from", "to"),
            registry=target,
        )
        self.opened = Counter(
            "agentbox_adapter_open",
            "Attempts to open a slot",
            ("slot", "impl", "outcome"),
            registry=target,
        )
        self.dispatch = Counter(
            "agentbox_adapter_dispatch",
            "Calls of a slot",
            ("slot", "method", "impl", "outcome"),
            registry=target,
        )
        self.duration = Histogram(
            "agentbox_adapter_duration_seconds",
            "Calls of a slot",
            ("slot", "method", "impl"),
            buckets=BUCKETS,
            registry=target,
        )
        self.stream_items = Counter(
            "agentbox_adapter_stream_items", "Items streamed", ("slot", "method"), registry=target
        )
        self.dropped_replies = Counter(
            "agentbox_orchestrator_dropped_replies",
            "Late or unknown messages of an external orchestrator",
            registry=target,
        )
        self.redactions = Counter(
            "agentbox_redactions", "Findings masked", ("slot", "method", "class"), registry=target
        )
        self.redaction_failures = Counter(
            "agentbox_redaction_failures",
            "Texts that could not be checked",
            ("slot", "policy"),
            registry=target,
        )
        self.journal_bytes = Gauge(
            "agentbox_journal_bytes", "Size of the journal in files of the box", registry=target
        )
        self.journal_max_bytes = Gauge(
            "agentbox_journal_max_bytes", "Size at which appends fail", registry=target
        )
        self.journal_lost = Counter(
            "agentbox_journal_lost",
            "Core events that could not be appended",
            ("reason",),
            registry=target,
        )
        self.undelivered = Gauge(
            "agentbox_events_undelivered",
            "Journal records not yet delivered to the sink",
            registry=target,
        )
        self.oldest_undelivered = Gauge(
            "agentbox_events_oldest_undelivered_seconds",
            "Age of the oldest undelivered record",
            registry=target,
        )
        self.dead_letters = Gauge(
            "agentbox_events_dead_letters",
            "Records that the sink permanently rejected",
            registry=target,
        )

"""Metrics of people who sign in."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter

_OUTCOMES: Final = ("ok", "refused", "rate-limited", "cross-site")


class OperatorMetrics:
    """Each outcome has a value from the start, so that an alert sees the first failure."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.logins = Counter(
            "agentbox_logins", "Sign-ins by outcome", ("outcome",), registry=registry
        )
        for outcome in _OUTCOMES:
            self.logins.labels(outcome)

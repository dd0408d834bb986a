"""Metrics of backups."""

import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PAUSES: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.3, 0.6)  # seconds


class BackupMetrics:
    """The age is that of the newest snapshot that this box made; absent until there is one.
    `overdue` says for how many seconds a scheduled backup is missing.
    """

    def __init__(
        self, registry: CollectorRegistry, succeeded_at: float | None, overdue: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._age: Gauge | None = None
        self._succeeded_at = succeeded_at or 0.0
        self.paused = Histogram(
            "agentbox_backup_pause_seconds",
            "Time for which writes waited for a backup",
            buckets=_PAUSES,
            registry=registry,
        )
        self._duration = Gauge(
            "agentbox_backup_duration_seconds", "Time of the last backup", registry=registry
        )
        self._size = Gauge(
            "agentbox_backup_size_bytes", "Bytes of the last backup", registry=registry
        )
        self._failures = Counter(
            "agentbox_backup_failures", "Backups that failed", ("reason",), registry=registry
        )
        self.damaged = Gauge(
            "agentbox_backup_damaged_snapshots",
            "Snapshots in which the last verification found a fault",
            registry=registry,
        )
        Gauge(
            "agentbox_backup_overdue_seconds",
            "Time since backup.schedule asked for a backup that was not made",
            registry=registry,
        ).set_function(overdue)
        if succeeded_at is not None:
            self._show_age()

    def made(self, seconds: float, size: int, at: float) -> None:
        """A backup was made, at that Unix time."""
        self._duration.set(seconds)
        self._size.set(size)
        self._succeeded_at = at
        self._show_age()

    def failed(self, reason: str) -> None:
        """A backup failed."""
        self._failures.labels(reason).inc()

    def _show_age(self) -> None:
        if self._age is None:
            self._age = Gauge(
                "agentbox_backup_age_seconds",
                "Time since the last backup was made",
                registry=self._registry,
            )
            self._age.set_function(lambda: time.time() - self._succeeded_at)

"""Metrics of the box itself."""

from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

from agentbox import __version__
from agentbox.api.metrics.denial_metrics import DenialMetrics
from agentbox.api.metrics.model_metrics import ModelMetrics


class BoxMetrics:
    """One object per registry."""

    def __init__(
        self, registry: CollectorRegistry, *, plan_digest: str, image_digest: str, models: Path
    ) -> None:
        """`models`: the file to which the gateway writes its counters."""
        registry.register(ModelMetrics(models))
        ProcessCollector(registry=registry)
        info = Gauge(
            "agentbox_build_info",
            "Always 1; the labels say what runs",
            ("version", "plan_digest", "image_digest"),
            registry=registry,
        )
        info.labels(__version__, plan_digest, image_digest).set(1)
        self.ready = Gauge("agentbox_ready", "1 while /ready answers 200", registry=registry)
        self.requirement = Gauge(
            "agentbox_requirement", "1 while the requirement holds", ("name",), registry=registry
        )
        self.transitions = Counter(
            "agentbox_ready_transitions", "Changes of readiness", ("to",), registry=registry
        )
        self.boot_seconds = Gauge(
            "agentbox_boot_seconds", "Length of a phase of the boot", ("phase",), registry=registry
        )
        self.unclean = Gauge(
            "agentbox_boot_previous_unclean",
            "1 when the last shutdown was not clean",
            registry=registry,
        )
        self.starts = Counter(
            "agentbox_program_starts", "Starts of a program", ("program",), registry=registry
        )
        self.denials = DenialMetrics()
        registry.register(self.denials)
        self.limit_counters = {
            "limit.breached": Counter(
                "agentbox_limit_breached", "Agents ended at a limit", ("limit",), registry=registry
            ),
            "limit.warning": Counter(
                "agentbox_limit_warning",
                "Agents that crossed 80 % of a limit",
                ("limit",),
                registry=registry,
            ),
        }  # by type of event; the labels are names of agentbox/policy/limits/registry.py
        self.drift = Gauge(
            "agentbox_posture_drift",
            "1 while the control is not what the plan promises",
            ("control",),
            registry=registry,
        )
        self.mcp_drift = Gauge(
            "agentbox_mcp_drift",
            "Pinned tools of an MCP server that are not offered, since they have changed",
            ("server",),
            registry=registry,
        )
        for state in ("ready", "unready"):
            self.transitions.labels(state)

    def verdict(self, ready: bool, requirements: Sequence[str], unmet: Sequence[str]) -> None:
        """Sets the current verdict."""
        self.ready.set(ready)
        for name in requirements:
            self.requirement.labels(name).set(name not in unmet)

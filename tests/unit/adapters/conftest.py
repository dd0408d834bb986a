"""A container over real classes in a directory, on a fast clock."""

from contextlib import asynccontextmanager

import pytest
from support import tables

from agentbox.adapters.runtime.adapter import SLOTS, Deps, SlotConfig
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import options_class
from agentbox.policy.redaction.redactor import build_redactor

# Seconds; the checks are frequent, while opening and health keep times that a busy machine can meet.
FAST = LifecycleTiming(
    open=2.0,
    failed_close=2.0,
    health_interval=0.1,
    health=2.0,
    retry_minimum=0.01,
    retry_initial=0.05,
    retry_maximum=0.1,
)
LOCAL = {
    "beads": "local-sqlite",
    "pods": "off",
    "memory": "off",
    "events": "local-jsonl",
    "orchestrator": "off",
}


class Box:
    """The slots of a box below a directory."""

    timing = FAST

    def __init__(self, prefix):
        self.paths = Paths(prefix)
        self.metrics = Metrics()
        self.changes = 0

    def config(self, slot, use, required=False, **options):
        return SlotConfig(
            slot=slot,
            use=use,
            required=required,
            paths=self.paths,
            box="test",
            options=options_class(slot, use)(**options),
        )

    def container(
        self, uses=None, required=(), privacy=None, spans=None, timing=FAST, deps=None, **options
    ):
        chosen = {**LOCAL, **(uses or {})}
        configs = {s: self.config(s, chosen[s], s in required, **options.get(s, {})) for s in SLOTS}
        guard = build_redactor(tables.privacy(**(privacy or {"enabled": False})))
        given = Deps(metrics=self.metrics, **(deps or {}))
        slots = Slots(configs, given, guard, timing=timing, spans=spans)
        slots.subscribe(self._changed)
        return slots

    def _changed(self):
        self.changes += 1

    @asynccontextmanager
    async def started(self, *args, **kwargs):
        container = self.container(*args, **kwargs)
        await container.start()
        try:
            yield container
        finally:
            await container.stop()

    def metric(self, name, **labels):
        """The value of one sample, 0 if there is none."""
        return self.metrics.registry.get_sample_value(name, labels) or 0


@pytest.fixture
def box(tmp_path):
    return Box(tmp_path)

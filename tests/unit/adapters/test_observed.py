"""Each method of each slot, by its local class and by `off`, is observed in the same way: a span, a
count, a duration, a line of the log, with labels from closed lists. The table of methods is walked,
so that a new one is included."""

import json
from collections import Counter
from contextlib import contextmanager

import pytest
import structlog
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.events import EventsContract
from agentbox_testkit.contracts.memory import MemoryContract
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from agentbox_testkit.contracts.pods import PodsContract
from prometheus_client.parser import text_string_to_metric_families as families

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.adapters.runtime.metrics import BUCKETS
from agentbox.adapters.runtime.observe import OUTCOMES, WARN_OUTCOMES
from agentbox.adapters.runtime.registry import allowed
from agentbox.contracts.slot_operations import METHODS
from agentbox.core.slot_errors import AdapterError

SUITES = {
    "beads": BeadsContract, "pods": PodsContract, "memory": MemoryContract, "events": EventsContract,
    "orchestrator": OrchestratorContract,
}  # fmt: skip
LOCAL = {
    "beads": "local-sqlite", "pods": "local-fs", "memory": "local-sqlite", "events": "local-jsonl",
    "orchestrator": "local-process",
}  # fmt: skip
WORDS = {"ok", "disabled", "unavailable", "rejected", "cancelled", "error", *OUTCOMES.values()}
WALK = [(slot, spec) for slot in SLOTS for spec in METHODS[slot]]
WHO = {
    "request_id": "the-request",
    "agent_id": "the-agent",
    "session_id": "the-session",
    "trace_id": "the-trace",
}


class Recorder:
    """Spans, as a list."""

    def __init__(self):
        self.spans = []

    @contextmanager
    def span(self, name, attributes):
        kept = dict(attributes)
        self.spans.append((name, kept))
        yield type("Span", (), {"set": lambda _, key, value: kept.__setitem__(key, value)})()


@pytest.fixture
def lines():
    """What is logged, as data, at every level."""
    with structlog.testing.capture_logs() as found:
        yield found


async def call(container, slot, spec):
    """Calls a method with the arguments of its contract suite; returns the outcome, as a word or an
    error's code."""
    args, kwargs = SUITES[slot].calls[spec.name]
    with as_caller(CallContext(principal="p", **WHO)):
        found = getattr(getattr(container, slot), spec.name)(*args, **kwargs)
        try:
            if not spec.is_stream:
                await found
                return ""
            if slot == "events" and container.capabilities("events"):
                await container.events.append([SUITES["events"].calls["append"][0][0][0]])
            await anext(found)
            await found.aclose()
        except AdapterError as error:
            return error.code
    return ""


@pytest.mark.parametrize("uses", [LOCAL, dict.fromkeys(SLOTS, "off")], ids=["local", "off"])
async def test_every_method_is_told(box, lines, uses):
    """One span, one count, one time and one line a call, which agree on how it ended."""
    recorder = Recorder()
    async with box.started(uses, spans=recorder) as container:
        for slot, spec in WALK:
            recorder.spans.clear()
            lines.clear()
            before, timed = counted(box, slot, spec)
            error = await call(container, slot, spec)
            name = f"agentbox.adapter.{slot}.{spec.name}"
            (span,) = [
                a
                for found, a in recorder.spans
                if found == name and a["agentbox.request_id"] == WHO["request_id"]
            ]
            impl = span.pop("adapter.impl")
            assert impl in allowed(slot)
            assert span.pop("error.type", "") == error
            assert span == {f"agentbox.{key}": value for key, value in WHO.items()}
            (line,) = [
                row
                for row in lines
                if row.get("request_id") == WHO["request_id"] and row["method"] == spec.name
            ]
            outcome = line["outcome"]
            assert (outcome == "ok") == (error == "")
            counts, times = counted(box, slot, spec)
            more = {word: counts[word] - before[word] for word in WORDS}
            if name.endswith("events.append"):  # the box appends too
                assert more[outcome] >= 1
            else:
                assert {word: count for word, count in more.items() if count} == {outcome: 1}
                assert times == timed + 1
            assert line["log_level"] == ("warning" if outcome in WARN_OUTCOMES else "debug")
            assert {key: line[key] for key in ("slot", "impl", "outcome", "error", *WHO)} == {
                "slot": slot, "impl": impl, "outcome": outcome, "error": error, **WHO,
            }  # fmt: skip
            assert set(line) == {
                "event",
                "log_level",
                "slot",
                "method",
                "impl",
                "outcome",
                "error",
                "seconds",
                *WHO,
            }
    assert_bounded(box)


def counted(box, slot, spec):
    """Calls of a method, by whichever class: how many ended with each outcome, and how many were
    timed."""
    counts, timed = Counter(), 0
    for family in box.metrics.registry.collect():
        for sample in family.samples:
            if (sample.labels.get("slot"), sample.labels.get("method")) != (slot, spec.name):
                continue
            if sample.name == "agentbox_adapter_dispatch_total":
                counts[sample.labels["outcome"]] += sample.value
            timed += sample.value * (sample.name == "agentbox_adapter_duration_seconds_count")
    return counts, timed


def assert_bounded(box):
    """Names and values of labels are those of the tables, so that the series of a box are limited."""
    from prometheus_client import generate_latest

    rows = {
        family.name: family.samples
        for family in families(generate_latest(box.metrics.registry).decode())
        if family.name in ("agentbox_adapter_dispatch", "agentbox_adapter_duration_seconds")
    }
    assert len(rows) == 2
    for sample in [sample for samples in rows.values() for sample in samples]:
        labels = dict(sample.labels)
        assert labels["method"] in {spec.name for spec in METHODS[labels["slot"]]}
        assert labels["impl"] in allowed(labels["slot"])
        extra = {"_total": {"outcome"}, "_bucket": {"le"}}.get(
            sample.name[sample.name.rfind("_") :], set()
        )
        assert set(labels) - extra - {"outcome"} == {"slot", "method", "impl"}
        assert labels.get("outcome", "ok") in WORDS
        if "le" in labels and labels["le"] != "+Inf":
            assert float(labels["le"]) in BUCKETS


async def test_a_bug_in_an_adapter_is_told_too(box, lines):
    """An exception that no adapter may raise: outcome error, its type and nothing of its text."""
    async with box.started() as container:
        container._lifecycles["beads"].serving.show = lambda bead_id: 1 // 0
        with pytest.raises(ZeroDivisionError):
            await container.beads.show("x")
    (line,) = [line for line in lines if line["event"] == "slot call" and line["method"] == "show"]
    assert (line["outcome"], line["error"], line["log_level"]) == (
        "error",
        "ZeroDivisionError",
        "warning",
    )
    assert "by zero" not in json.dumps(line)

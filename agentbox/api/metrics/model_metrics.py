"""Model calls, queues and budgets in `/metrics`, from the gateway's last report."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from agentbox.core.files.atomic import read_json
from agentbox.policy.rights.authorization import Budget
from agentbox.policy.rights.budget_usage import BudgetUsage, usage_report

# Of each counter: its name in the file, its description, its labels.
_COUNTERS: Final = (
    ("calls", "Calls of models", ("provider", "agent", "outcome")),
    ("tokens", "Tokens that were settled", ("provider", "agent", "direction")),
    ("estimated", "Calls that were settled by an estimate", ("provider",)),
    ("retries", "Second and third tries at a provider", ("provider",)),
    ("masked", "Findings of the privacy filter that were masked", ("provider", "entity")),
    ("echoes", "Times that a provider sent the key back", ("provider",)),
    ("waited_ms", "Time in the queue, all calls together", ("provider",)),
)


class ModelMetrics(Collector):
    """`path` is the gateway's file; without one every family is empty."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Counters start from 0 with the gateway."""
        state = read_json(self._path) or {}
        counts: Mapping[str, Any] = state.get("counts", {})
        for name, description, labels in _COUNTERS:
            family = CounterMetricFamily(f"agentbox_model_{name}", description, labels=labels)
            for *names, value in counts.get(name, ()):
                family.add_metric(names, value)
            yield family
        cost = CounterMetricFamily(
            "agentbox_llm_cost_micros",
            "Cost of model calls in micro-units, of all calls in the record",
            labels=("provider", "model", "agent"),
        )
        for provider, pattern, agent, value in counts.get("cost", ()):
            cost.add_metric((provider, pattern, agent), value)
        yield cost
        yield from _queues(state.get("queues", {}))
        yield from _budgets(state.get("budgets", {}), state.get("spent", {}))


def _queues(queues: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    depth = GaugeMetricFamily("agentbox_model_queue_depth", "Calls that wait", labels=("provider",))
    running = GaugeMetricFamily("agentbox_model_running", "Calls in flight", labels=("provider",))
    for name, (waits, runs) in queues.items():
        depth.add_metric((name,), waits)
        running.add_metric((name,), runs)
    yield depth
    yield running


def _budgets(budgets: Mapping[str, Any], spent: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    tokens = GaugeMetricFamily(
        "agentbox_model_budget_tokens",
        "Tokens of the window, reserved ones too",
        labels=("agent", "state"),
    )
    calls = GaugeMetricFamily(
        "agentbox_model_budget_calls", "Calls of the window", labels=("agent", "state")
    )
    cost = GaugeMetricFamily(
        "agentbox_model_budget_cost_micros",
        "Money of the window in micro-units, reserved money too",
        labels=("agent", "state"),
    )
    for name, budget in budgets.items():
        use = usage_report(
            {name: Budget(**budget)}, lambda key: BudgetUsage(**spent[key]), time.time()
        )
        families = ((tokens, use["tokens"]), (calls, use["calls"]), (cost, use.get("cost")))
        for family, row in families:
            if row is None:
                continue
            for state in ("used", "left"):
                family.add_metric((name, state), row[state])
    yield tokens
    yield calls
    yield cost

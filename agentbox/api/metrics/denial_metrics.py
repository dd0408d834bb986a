"""Denials of agents in `/metrics`, as counted by the agent host."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from agentbox.contracts.agent_host.denials import DenialCounts

_EMPTY = DenialCounts(revision=-1, totals=())


class DenialMetrics(Collector):
    """The last counts, kept while the host is down. They restart from 0 with the host."""

    counts = _EMPTY

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One family, by agent, class, layer and rule."""
        family = CounterMetricFamily(
            "agentbox_denied",
            "Denials of agent processes",
            labels=("agent", "class", "layer", "rule"),
        )
        for row in self.counts.totals:
            family.add_metric((row.agent, row.denial_class, row.layer, row.rule), row.count)
        yield family

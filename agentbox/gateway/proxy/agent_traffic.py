"""What one agent has open in the proxy, and what it may still move."""

from collections.abc import Iterator

from agentbox.gateway.proxy.egress_config import EgressConfig
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.traffic_ledger import TrafficLedger
from agentbox.policy.rights.authorization import Authorization


class AgentTraffic:
    """One an agent, for as long as anything of it is open."""

    def __init__(self, caller: Authorization, ledger: TrafficLedger, egress: EgressConfig) -> None:
        self.open_connections = 0
        self.caller = caller  # the latest generation
        self._ledger, self._egress = ledger, egress

    def check(self) -> None:
        """Room for one connection more, and bytes left. Raises Sorry."""
        max_connections = self._egress.max_connections
        if self.open_connections >= max_connections:
            raise ProxyRefusal(
                429,
                "limit:connections",
                f"cannot open another connection: {max_connections} are open, egress.max_connections. Close one first.",
            )
        for agent_id, cap in self._caps():
            if self._ledger.total(agent_id) >= cap:
                raise _limit_exceeded(agent_id, cap)

    def count_bytes(self, count: int) -> None:
        """Counts bytes that are moved, of the agent and of all that it descends from. Raises Sorry once they are too many."""
        for agent_id, _ in self._caps():
            self._ledger.add(agent_id, count)
        for agent_id, cap in self._caps():
            if self._ledger.total(agent_id) > cap:
                raise _limit_exceeded(agent_id, cap)

    def _caps(self) -> Iterator[tuple[str, int]]:
        """Bytes in 24 hours, both ways: its own and, since a child is soon started anew, those of each ancestor."""
        yield (
            self.caller.agent_id,
            int(self.caller.limits.get("egress") or self._egress.bytes_per_day),
        )
        for ancestor in self.caller.ancestors:
            yield ancestor.agent_id, int(ancestor.egress or self._egress.bytes_per_day)


def _limit_exceeded(agent_id: str, cap: int) -> ProxyRefusal:
    return ProxyRefusal(
        429,
        "limit:egress",
        f"cannot move more bytes: limits.egress of {agent_id} allows {cap} in 24 hours. Wait, or ask an operator to raise it.",
    )


class TrafficRegistry:
    """Those of all agents."""

    def __init__(self, ledger: TrafficLedger, egress: EgressConfig) -> None:
        self._ledger, self._egress = ledger, egress
        self._traffic: dict[str, AgentTraffic] = {}

    def get(self, caller: Authorization) -> AgentTraffic:
        """That of an agent, whichever its generation."""
        traffic = self._traffic.setdefault(
            caller.agent_id, AgentTraffic(caller, self._ledger, self._egress)
        )
        traffic.caller = caller
        return traffic

    def discard(self, traffic: AgentTraffic) -> None:
        """Drops it when nothing is open any more; bytes are remembered elsewhere."""
        if not traffic.open_connections:
            self._traffic.pop(traffic.caller.agent_id, None)

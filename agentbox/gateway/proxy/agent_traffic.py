"""Open connections and traffic limits of each agent."""

from collections.abc import Iterator

from agentbox.gateway.proxy.egress_config import EgressConfig
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.traffic_ledger import TrafficLedger
from agentbox.policy.rights.authorization import Authorization


class AgentTraffic:
    """The traffic of one agent while it has open connections."""

    def __init__(self, caller: Authorization, ledger: TrafficLedger, egress: EgressConfig) -> None:
        self.open_connections = 0
        self.caller = caller
        self._ledger, self._egress = ledger, egress

    def check(self) -> None:
        """Checks the connection limit and the traffic limit. Raises ProxyRefusal."""
        max_connections = self._egress.max_connections
        if self.open_connections >= max_connections:
            raise ProxyRefusal(
                429,
                "limit:connections",
                f"cannot open another connection: egress.max_connections is {max_connections}. "
                "Close one first.",
            )
        for agent_id, cap in self._caps():
            if self._ledger.total(agent_id) >= cap:
                raise _limit_exceeded(agent_id, cap)

    def count_bytes(self, count: int) -> None:
        """Counts bytes for the agent and all its ancestors. Raises ProxyRefusal above a limit."""
        for agent_id, _ in self._caps():
            self._ledger.add(agent_id, count)
        for agent_id, cap in self._caps():
            if self._ledger.total(agent_id) > cap:
                raise _limit_exceeded(agent_id, cap)

    def _caps(self) -> Iterator[tuple[str, int]]:
        """Bytes per 24 hours in both directions, of the agent and of each ancestor, so that new
        children get no new allowance."""
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
        f"cannot transfer more bytes: limits.egress of {agent_id} is {cap} in 24 hours. Wait, "
        "or ask an operator to raise it.",
    )


class TrafficRegistry:
    """The traffic of all agents."""

    def __init__(self, ledger: TrafficLedger, egress: EgressConfig) -> None:
        self._ledger, self._egress = ledger, egress
        self._traffic: dict[str, AgentTraffic] = {}

    def get(self, caller: Authorization) -> AgentTraffic:
        """The traffic of an agent, across its generations."""
        traffic = self._traffic.setdefault(
            caller.agent_id, AgentTraffic(caller, self._ledger, self._egress)
        )
        traffic.caller = caller
        return traffic

    def discard(self, traffic: AgentTraffic) -> None:
        """Removes an entry without open connections; the ledger keeps the byte counts."""
        if not traffic.open_connections:
            self._traffic.pop(traffic.caller.agent_id, None)

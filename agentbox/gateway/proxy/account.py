"""What one agent has open in the proxy, and what it may still move."""

from collections.abc import Iterator

from agentbox.gateway.proxy.egress_config import Reach
from agentbox.gateway.proxy.refusals import Sorry
from agentbox.gateway.proxy.spent import Spent
from agentbox.policy.rights.standing import Standing


class Account:
    """One an agent, for as long as anything of it is open."""

    def __init__(self, who: Standing, spent: Spent, reach: Reach) -> None:
        self.open = 0
        self.who = who  # the latest generation
        self._spent, self._reach = spent, reach

    def check(self) -> None:
        """Room for one connection more, and bytes left. Raises Sorry."""
        most = self._reach.max_connections
        if self.open >= most:
            raise Sorry(
                429, "limit:connections",
                f"cannot open another connection: {most} are open, egress.max_connections. Close one first.",
            )  # fmt: skip
        for agent_id, cap in self._caps():
            if self._spent.of(agent_id) >= cap:
                raise _over(agent_id, cap)

    def take(self, count: int) -> None:
        """Counts bytes that are moved, of the agent and of all that it descends from. Raises Sorry once they are too many."""
        for agent_id, _ in self._caps():
            self._spent.add(agent_id, count)
        for agent_id, cap in self._caps():
            if self._spent.of(agent_id) > cap:
                raise _over(agent_id, cap)

    def _caps(self) -> Iterator[tuple[str, int]]:
        """Bytes in 24 hours, both ways: its own and, since a child is soon started anew, those of each ancestor."""
        yield self.who.agent_id, int(self.who.limits.get("egress") or self._reach.bytes)
        for one in self.who.ancestors:
            yield one.agent_id, int(one.egress or self._reach.bytes)


def _over(agent_id: str, cap: int) -> Sorry:
    return Sorry(
        429, "limit:egress",
        f"cannot move more bytes: limits.egress of {agent_id} allows {cap} in 24 hours. Wait, or ask an operator to raise it.",
    )  # fmt: skip


class Accounts:
    """Those of all agents."""

    def __init__(self, spent: Spent, reach: Reach) -> None:
        self._spent, self._reach = spent, reach
        self._open: dict[str, Account] = {}

    def of(self, who: Standing) -> Account:
        """That of an agent, whichever its generation."""
        account = self._open.setdefault(who.agent_id, Account(who, self._spent, self._reach))
        account.who = who
        return account

    def forget(self, account: Account) -> None:
        """Drops it when nothing is open any more; bytes are remembered elsewhere."""
        if not account.open:
            self._open.pop(account.who.agent_id, None)

"""What one agent has open in the proxy, and what it may still move."""

from agentbox.gateway.proxy.answers import Sorry
from agentbox.gateway.proxy.reach import Reach
from agentbox.gateway.proxy.spent import Spent
from agentbox.grants.standing import Standing


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
        if self._spent.of(self.who.agent_id) >= self.cap:
            raise self._over()

    def take(self, count: int) -> None:
        """Counts bytes that are moved. Raises Sorry once they are too many."""
        self._spent.add(self.who.agent_id, count)
        if self._spent.of(self.who.agent_id) > self.cap:
            raise self._over()

    @property
    def cap(self) -> int:
        """Bytes in 24 hours, both ways."""
        return int(self.who.limits.get("egress") or self._reach.bytes)

    def _over(self) -> Sorry:
        return Sorry(
            429, "limit:egress",
            f"cannot move more bytes: limits.egress allows {self.cap} in 24 hours. Wait, or ask an operator to raise it.",
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

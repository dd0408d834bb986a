"""All connections of the forward proxy."""

import asyncio
from typing import Final

from agentbox.gateway.authorizer import Authority
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.proxy.account import Accounts
from agentbox.gateway.proxy.egress_config import Reach
from agentbox.gateway.proxy.resolve import Resolver, system_resolver
from agentbox.gateway.proxy.session import Session
from agentbox.gateway.proxy.spent import Spent
from agentbox.gateway.proxy.wire import Wire

STRANGERS: Final = 256  # connections without a token; one more takes the place of the oldest
_SPENT: Final = "egress.json"


class Proxy:
    """Give `connection` to a listener, and run `spent.keep` while it serves. Raises OSError."""

    def __init__(self, config: GatewayConfig, authority: Authority, resolver: Resolver | None = None) -> None:
        self.authority = authority
        self.reach = Reach(config)
        self.spent = Spent(config.state / _SPENT)
        self.accounts = Accounts(self.spent, self.reach)
        self.resolver = resolver or system_resolver()
        self._strangers: dict[Wire, None] = {}
        self._sessions: set[asyncio.Task[None]] = set()

    def connection(self) -> asyncio.Protocol:
        """The protocol of one."""
        return Wire(self._opened)

    def known(self, wire: Wire) -> None:
        """Whoever sent a token that holds is no stranger any more."""
        self._strangers.pop(wire, None)

    async def close(self) -> None:
        """Cuts every connection and writes down what was spent. Raises OSError."""
        for task in self._sessions:
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        self.spent.save()

    def _opened(self, wire: Wire) -> None:
        if len(self._strangers) >= STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cut()
        self._strangers[wire] = None
        self.reach.look()
        task = asyncio.create_task(Session(self, wire).serve())
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)
        task.add_done_callback(lambda _: self._strangers.pop(wire, None))

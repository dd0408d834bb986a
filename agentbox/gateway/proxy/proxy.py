"""The forward proxy."""

import asyncio
from typing import Final

from agentbox.gateway.authorizer import Authorizer
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.proxy.agent_traffic import TrafficRegistry
from agentbox.gateway.proxy.egress_config import EgressConfig
from agentbox.gateway.proxy.resolve import Resolver, system_resolver
from agentbox.gateway.proxy.session import ProxyContext, ProxySession
from agentbox.gateway.proxy.stream import ProxyStream
from agentbox.gateway.proxy.traffic_ledger import TrafficLedger

MAX_UNAUTHENTICATED: Final = 256  # connections without a token; the oldest is aborted above it
_LEDGER_FILE: Final = "egress.json"


class Proxy:
    """`make_stream` is the listener's protocol factory; `ledger.save_periodically` must run. Raises
    OSError."""

    def __init__(
        self, config: GatewayConfig, authorizer: Authorizer, resolver: Resolver | None = None
    ) -> None:
        self._egress = EgressConfig(config)
        self.ledger = TrafficLedger(config.state_dir / _LEDGER_FILE)
        self._context = ProxyContext(
            authorizer=authorizer,
            egress=self._egress,
            traffic=TrafficRegistry(self.ledger, self._egress),
            resolver=resolver or system_resolver(),
            on_authenticated=self._on_authenticated,
        )
        self._unauthenticated: dict[ProxyStream, None] = {}
        self._sessions: set[asyncio.Task[None]] = set()

    def make_stream(self) -> asyncio.Protocol:
        """Creates the protocol of a new connection."""
        return ProxyStream(self._on_connected)

    async def close(self) -> None:
        """Aborts all connections and saves the traffic ledger. Raises OSError."""
        for task in self._sessions:
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        self.ledger.save()

    def _on_connected(self, stream: ProxyStream) -> None:
        if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            oldest = next(iter(self._unauthenticated))
            del self._unauthenticated[oldest]
            oldest.abort()
        self._unauthenticated[stream] = None
        self._egress.refresh()
        task = asyncio.create_task(ProxySession(self._context, stream).serve())
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)
        task.add_done_callback(lambda _: self._unauthenticated.pop(stream, None))

    def _on_authenticated(self, stream: ProxyStream) -> None:
        self._unauthenticated.pop(stream, None)

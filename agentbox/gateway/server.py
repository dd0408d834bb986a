"""The one port of the gateway, and what stands behind it."""

import asyncio

from agentbox.gateway.app import App, absent
from agentbox.gateway.authority import Authority
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.front import Front
from agentbox.plan.network import LOOPBACK
from agentbox.serving import Bounds, Listener, Make, bind

BOUNDS = Bounds(connections=512)
_LAST_WORDS = 0.5  # seconds in which answers under way may end


class Server:
    """Serves from `open` to `close`."""

    def __init__(self, config: GatewayConfig, authority: Authority) -> None:
        self._config, self._authority = config, authority
        app = App({"/rpc": absent("door"), "/mcp": absent("door"), "/llm": absent("model gateway")})
        self._listener = Listener(app, bind(LOOPBACK, config.port), BOUNDS, self._front)

    @property
    def port(self) -> int:
        """The port that was bound."""
        return self._listener.port

    async def open(self) -> None:
        """Returns once the kernel accepts connections. Raises AgentboxError (exit 7) for a port that is taken."""
        await self._listener.open()

    async def close(self) -> None:
        """Cuts what does not end by itself."""
        await self._listener.close(_LAST_WORDS)

    def _front(self, http: Make) -> asyncio.Protocol:
        return Front(http, http)

"""The one port of the gateway, and what stands behind it."""

import asyncio
from typing import TYPE_CHECKING

from agentbox.core.http.connection import Bounds
from agentbox.core.http.listener import Asgi, Listener, Make, bind
from agentbox.gateway.agent_api.api import Door
from agentbox.gateway.agent_api.app import RpcApp
from agentbox.gateway.agent_api.mcp import McpApp
from agentbox.gateway.app import App, absent
from agentbox.gateway.authorizer import Authority
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.connections.front import Front
from agentbox.gateway.connections.tenants import KEPT, STRANGERS, TenantHttp, Tenants
from agentbox.gateway.proxy.proxy import Proxy
from agentbox.gateway.proxy.resolve import Resolver
from agentbox.plan.names import MODELS_TOLD
from agentbox.plan.network import LOOPBACK

if TYPE_CHECKING:
    from agentbox.gateway.llm.app import LlmApp

BOUNDS = Bounds(connections=STRANGERS + 100 * KEPT)  # each agent has its own share of them
_LAST_WORDS = 0.5  # seconds in which answers under way may end


class Server:
    """Serves from `open` to `close`."""

    def __init__(self, config: GatewayConfig, authority: Authority, resolver: Resolver | None = None) -> None:
        """`resolver` finds addresses of names; by default the host's."""
        self._config = config
        self._proxy = Proxy(config, authority, resolver)
        self.models = _models(config, authority)
        self._door = (
            Door(config, authority) if self.models is None else Door(config, authority, self.models.ledger.spent)
        )
        llm: Asgi = (
            absent("models", "[providers] names no endpoint that is enabled") if self.models is None else self.models
        )
        app = App({"/rpc": RpcApp(self._door), "/mcp": McpApp(self._door), "/llm": llm})
        self._silent: dict[Front, None] = {}
        tenants = type("Tenanted", (TenantHttp,), {"tenants": Tenants(authority)})
        self._listener = Listener(app, bind(LOOPBACK, config.port), BOUNDS, self._front, tenants)

    @property
    def port(self) -> int:
        """The port that was bound."""
        return self._listener.port

    async def open(self) -> None:
        """Returns once the kernel accepts connections. Raises AgentboxError for budgets that cannot be read."""
        if self.models is not None:
            await self.models.open()
            self._chores = asyncio.create_task(_chores(self.models, self._config), name="models")
        await self._listener.open()
        self._keeping = asyncio.create_task(self._proxy.spent.keep(), name="spent")

    async def close(self) -> None:
        """Cuts what does not end by itself."""
        self._keeping.cancel()
        await self._proxy.close()
        await self._listener.close(_LAST_WORDS)
        await self._door.close()
        if self.models is not None:
            self._chores.cancel()
            await self.models.close()

    def _front(self, http: Make) -> asyncio.Protocol:
        return Front(http, self._proxy.connection, self._silent)


def _models(config: GatewayConfig, authority: Authority) -> "LlmApp | None":
    """The model gateway, None where no provider is enabled: its client and its budgets are then not even loaded."""
    if not any(table["enabled"] for table in config.plan.providers.values()):
        return None
    from agentbox.gateway.llm.app import llm_app
    from agentbox.gateway.llm.config import LlmConfig

    return llm_app(LlmConfig.from_plan(config.plan, config.paths), authority)


async def _chores(models: "LlmApp", config: GatewayConfig) -> None:
    """Tells the counts and follows live keys."""
    from agentbox.gateway.llm.gauges import tell
    from agentbox.gateway.llm.live import follow

    await asyncio.gather(tell(models.state, config.paths.run / MODELS_TOLD), follow(models, config.paths))

"""The single port of the gateway and the services behind it."""

import asyncio
from typing import TYPE_CHECKING

from agentbox.core.http.connection import ConnectionLimits
from agentbox.core.http.listener import AsgiApp, Listener, ProtocolFactory, bind
from agentbox.gateway.agent_api.api import AgentApi
from agentbox.gateway.agent_api.app import JsonRpcEndpoint
from agentbox.gateway.agent_api.mcp import McpEndpoint
from agentbox.gateway.app import make_application, unavailable_app
from agentbox.gateway.authorizer import Authorizer
from agentbox.gateway.config import GatewayConfig
from agentbox.gateway.connections.connection_quota import (
    MAX_PER_AGENT,
    MAX_UNAUTHENTICATED,
    AgentConnection,
    ConnectionQuota,
)
from agentbox.gateway.connections.protocol_sniffer import ProtocolSniffer
from agentbox.gateway.proxy.proxy import Proxy
from agentbox.gateway.proxy.resolve import Resolver
from agentbox.plan.names import MODEL_METRICS_FILE
from agentbox.plan.network import LOOPBACK

if TYPE_CHECKING:
    from agentbox.gateway.llm.app import LlmApp

BOUNDS = ConnectionLimits(
    connections=MAX_UNAUTHENTICATED + 100 * MAX_PER_AGENT
)  # shared by the per-agent quotas
_DRAIN_SECONDS = 0.5  # seconds for responses in progress


class GatewayServer:
    """Serves from `open` to `close`."""

    def __init__(
        self, config: GatewayConfig, authorizer: Authorizer, resolver: Resolver | None = None
    ) -> None:
        """`resolver` resolves host names; default: the system resolver."""
        self._config = config
        self._proxy = Proxy(config, authorizer, resolver)
        self.models = _build_models(config, authorizer)
        self._agent_api = (
            AgentApi(config, authorizer)
            if self.models is None
            else AgentApi(config, authorizer, self.models.ledger.usage)
        )
        llm: AsgiApp = (
            unavailable_app("models", "[providers] has no enabled endpoint")
            if self.models is None
            else self.models
        )
        app = make_application(JsonRpcEndpoint(self._agent_api), McpEndpoint(self._agent_api), llm)
        self._sniffing: dict[ProtocolSniffer, None] = {}
        connection_class = type(
            "LimitedConnection", (AgentConnection,), {"quota": ConnectionQuota(authorizer)}
        )
        self._listener = Listener(
            app, bind(LOOPBACK, config.port), BOUNDS, self._make_sniffer, connection_class
        )

    @property
    def port(self) -> int:
        """The bound port."""
        return self._listener.port

    async def open(self) -> None:
        """Returns once the kernel accepts connections. Raises AgentboxError if budgets cannot be
        read."""
        if self.models is not None:
            await self.models.open()
            self._model_task = asyncio.create_task(
                _run_model_tasks(self.models, self._config), name="models"
            )
        await self._listener.open()
        self._save_task = asyncio.create_task(self._proxy.ledger.save_periodically(), name="spent")

    async def close(self) -> None:
        """Closes all connections after the drain timeout."""
        self._save_task.cancel()
        await self._proxy.close()
        await self._listener.close(_DRAIN_SECONDS)
        await self._agent_api.close()
        if self.models is not None:
            self._model_task.cancel()
            await self.models.close()

    def _make_sniffer(self, http: ProtocolFactory) -> asyncio.Protocol:
        return ProtocolSniffer(http, self._proxy.make_stream, self._sniffing)


def _build_models(config: GatewayConfig, authorizer: Authorizer) -> "LlmApp | None":
    """Creates the model gateway. Returns None, without importing it, if no provider is enabled."""
    if not any(provider.enabled for provider in config.plan.providers.values()):
        return None
    from agentbox.gateway.llm.app import llm_app
    from agentbox.gateway.llm.config import LlmConfig

    return llm_app(LlmConfig.from_plan(config.plan, config.paths), authorizer)


async def _run_model_tasks(models: "LlmApp", config: GatewayConfig) -> None:
    """Writes the counters and follows live configuration."""
    from agentbox.gateway.llm.gateway_counters import write_changes
    from agentbox.gateway.llm.live_config import watch_config

    await asyncio.gather(
        write_changes(models.state, config.paths.run / MODEL_METRICS_FILE),
        watch_config(models, config.paths),
        models.prune_periodically(),
    )

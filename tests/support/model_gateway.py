"""A model gateway on its own port, with a model server, and agents whose rights a test defines."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import uvicorn
from agentbox_testkit.wait import wait_until

from agentbox.gateway.llm.app import LlmApp, llm_app
from agentbox.gateway.llm.config import LlmConfig, Provider
from agentbox.plan.tables import CostPlan, ModelPricePlan
from agentbox.policy.cost import ModelPrice
from agentbox.policy.redaction.redactor import build_redactor
from agentbox.policy.rights.authorization import Ancestor, Authorization, Budget
from support import tables
from support.fake_authorizer import FakeAuthorizer, right
from support.model_server import ModelServer

KEY = "operator-key-0123456789abcdef"
VARIABLE = "MODEL_KEY"
KINDS = {"openai": "/v1", "anthropic": "", "gemini": ""}
BUDGET = Budget(
    max_tokens=1_000_000, max_calls=1000, window_seconds=3600, max_concurrent=2, weight=1
)

PRICE = ModelPrice.parse(
    "small-*",
    ModelPricePlan(input="3", output="15", cache_read="0.3", cache_write="3.75"),
    "USD",
)


class ModelAuthorizer(FakeAuthorizer):
    """Authorizations of agents that call models."""

    @property
    def refusal_counts(self) -> Counter[tuple[str, str]]:
        """The number of denials by agent name and rule."""
        return Counter((agent_id.removeprefix("id-"), rule) for agent_id, _, rule in self.refusals)

    def add_agent(
        self,
        name: str,
        budget: Budget | None = BUDGET,
        parent: Authorization | None = None,
        **changes: Any,
    ) -> Authorization:
        """Add an agent with the token `token-<name>`; it may use every provider."""
        ancestors: tuple[Ancestor, ...] = ()
        if parent is not None:
            ancestor = Ancestor(
                agent_id=parent.agent_id,
                name=parent.name,
                agent=parent.agent,
                budget=parent.budget,
                rights=parent.rights,
            )
            ancestors = (ancestor, *parent.ancestors)
        fields = {
            "agent_id": f"id-{name}",
            "name": name,
            "agent": name,
            "profile": "sandboxed",
            "provider": "openai",
            "budget": budget,
            "ancestors": ancestors,
            "rights": (right("llm", "call", *KINDS),),
        }
        return self.add(token=f"token-{name}", **(fields | changes))


@dataclass
class ModelGatewayFixture:
    """A model gateway with its server and client. `state` persists if it is opened again on the
    same directory.
    """

    server: ModelServer
    authorizer: ModelAuthorizer
    app: LlmApp
    client: httpx.AsyncClient
    url: str
    config: LlmConfig

    async def chat(self, name: str, text: str = "Hi.", **members: Any) -> httpx.Response:
        """Send a chat completion of that agent."""
        body = {"model": "small-1", "messages": [{"role": "user", "content": text}], **members}
        return await self.post(name, "openai/v1/chat/completions", body)

    async def post(self, name: str, path: str, body: Any) -> httpx.Response:
        """Send a request with the agent's token as a bearer."""
        headers = {"authorization": f"Bearer token-{name}"}
        return await self.client.post(f"{self.url}/llm/{path}", json=body, headers=headers)


@asynccontextmanager
async def model_gateway(
    state: Path,
    server: ModelServer,
    authorizer: ModelAuthorizer | None = None,
    *,
    privacy: str = "off",
    prices: Mapping[str, ModelPrice] | None = None,
    unknown: Literal["refuse", "count"] = "refuse",
    **provider: Any,
) -> AsyncIterator[ModelGatewayFixture]:
    """Run a gateway with three providers of the three kinds, all on the same server."""
    shared = {
        "env_var": VARIABLE,
        "models": ("*",),
        "max_concurrent": 4,
        "timeout_seconds": 30,
        **provider,
    }
    providers = {
        kind: Provider(
            name=kind, kind=kind, base_url=server.url + path, prices=prices or {}, **shared
        )
        for kind, path in KINDS.items()
    }
    redactor = build_redactor(tables.privacy(policy={"outbound": privacy}))
    config = LlmConfig(
        providers=providers,
        key={VARIABLE: KEY}.get,
        state_dir=state,
        redactor=redactor,
        cost=CostPlan(currency="USD", unknown=unknown, keep_days=400),
    )
    authorizer = authorizer or ModelAuthorizer()
    app = llm_app(config, authorizer)
    await app.open()
    serving = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="critical", lifespan="off", access_log=False)
    )
    serving.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(serving.serve())
    try:
        await wait_until(lambda: serving.started, "the gateway listens")
        port = serving.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            yield ModelGatewayFixture(
                server, authorizer, app, client, f"http://127.0.0.1:{port}", config
            )
    finally:
        serving.should_exit = serving.force_exit = True
        await running
        await app.close()

"""A model gateway on a port of its own, before a model server of ours, with agents whose rights a test decides."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from agentbox.gateway.authority import Layer, Refused
from agentbox.gateway.llm.app import LlmApp, llm_app
from agentbox.gateway.llm.config import LlmConfig, Provider
from agentbox.grants.rights import allowing
from agentbox.grants.standing import Ancestor, Budget, Right, Standing
from agentbox.manifest.patterns import Scope
from agentbox.privacy import guard_of
from agentbox.testing.model_server import ModelServer
from agentbox.testing.until import until

KEY = "operator-key-0123456789abcdef"
VARIABLE = "MODEL_KEY"
KINDS = {"openai": "/v1", "anthropic": "", "gemini": ""}
BUDGET = Budget(max_tokens=1_000_000, max_calls=1000, window_seconds=3600, max_concurrent=2, weight=1)


def right(scope: Scope, operation: str, *patterns: str) -> Right:
    """A rule that allows."""
    return Right(
        grant_id=f"g_{scope}", scope=scope, mode="allow", operations=(operation,), patterns=patterns
    )  # fmt: skip


@dataclass
class Standings:
    """An `Authority` that holds what the test gives it. `refusals`: how often each rule was told."""

    held: dict[str, Standing] = field(default_factory=dict)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    _cuts: dict[str, "asyncio.Future[None]"] = field(default_factory=dict)

    def add(
        self, name: str, budget: Budget | None = BUDGET, parent: Standing | None = None, **changes: Any
    ) -> Standing:
        """An agent whose token is `token-<name>`; it may use every provider."""
        given: tuple[Ancestor, ...] = ()
        if parent is not None:
            one = Ancestor(agent_id=parent.agent_id, name=parent.name, budget=parent.budget, rights=parent.rights)
            given = (one, *parent.ancestors)
        standing = Standing(
            agent_id=f"id-{name}", generation=1, name=name, token_sha256=_digest(f"token-{name}"), profile="sandboxed",
            rights=(right("llm", "call", *KINDS),), provider="openai", budget=budget, ancestors=given,
        )  # fmt: skip
        return self.put(replace(standing, **changes))

    def put(self, standing: Standing) -> Standing:
        """Whatever was held under that token before; whoever waits for a change is told."""
        self.held[standing.token_sha256] = standing
        self._tell(standing)
        return standing

    def drop(self, standing: Standing) -> None:
        """Its token is over."""
        del self.held[standing.token_sha256]
        self._tell(standing)

    def _tell(self, standing: Standing) -> None:
        cut = self._cuts.pop(standing.agent_id, None)
        if cut is not None:
            cut.set_result(None)

    def identify(self, bearer: str) -> Standing:
        found = self.held.get(_digest(bearer))
        if found is None:
            raise Refused("token", "the token is unknown, or its agent has ended")
        return found

    async def check(
        self,
        who: Standing,
        scope: Scope,
        operation: str,
        value: str,
        *,
        method: str = "",
        path: str = "",
        take: bool = True,
    ) -> None:
        if not allowing(self.held[who.token_sha256].rights, scope, operation, value, method=method, path=path):
            raise Refused(f"{scope} {operation}", f"no right of the agent allows {scope} {operation} here")

    async def approve(
        self,
        who: Standing,
        kind: str,
        value: str,
        parameters: Mapping[str, Any],
        words: str = "",
        *,
        hold: bool = False,
    ) -> None:
        raise Refused(f"approval {kind}", "no test of models asks")

    def revoked(self, who: Standing) -> "asyncio.Future[None]":
        return self._cuts.setdefault(who.agent_id, asyncio.get_running_loop().create_future())

    def denied(self, who: Standing, layer: Layer, rule: str, detail: str = "") -> None:
        self.refusals[who.name, rule] += 1


@dataclass
class Room:
    """What a test works with. `state` outlives a room that is opened again on the same folder."""

    server: ModelServer
    standings: Standings
    app: LlmApp
    client: httpx.AsyncClient
    url: str
    config: LlmConfig

    async def chat(self, name: str, text: str = "Hi.", **members: Any) -> httpx.Response:
        """One chat completion of that agent."""
        body = {"model": "small-1", "messages": [{"role": "user", "content": text}], **members}
        return await self.post(name, "openai/v1/chat/completions", body)

    async def post(self, name: str, path: str, body: Any) -> httpx.Response:
        """With the agent's token as a bearer."""
        head = {"authorization": f"Bearer token-{name}"}
        return await self.client.post(f"{self.url}/llm/{path}", json=body, headers=head)


@asynccontextmanager
async def room(
    state: Path, server: ModelServer, standings: Standings | None = None, *, privacy: str = "off", **provider: Any
) -> AsyncIterator[Room]:
    """A gateway whose three providers are the same server, under the three kinds."""
    shared = {"env_var": VARIABLE, "models": ("*",), "max_concurrent": 4, "timeout_seconds": 30, **provider}
    providers = {
        kind: Provider(name=kind, kind=kind, base_url=server.url + path, **shared) for kind, path in KINDS.items()
    }
    guard = guard_of({"enabled": True, "mode": "rules", "policy": {"outbound": privacy}})
    config = LlmConfig(providers=providers, key={VARIABLE: KEY}.get, state=state, guard=guard)
    standings = standings or Standings()
    app = llm_app(config, standings)
    await app.open()
    serving = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off", access_log=False))
    serving.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(serving.serve())
    try:
        await until(lambda: serving.started, "the gateway listens")
        port = serving.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            yield Room(server, standings, app, client, f"http://127.0.0.1:{port}", config)
    finally:
        serving.should_exit = serving.force_exit = True
        await running
        await app.close()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

"""A client of the agent API with an agent's token, for tests."""

import json
from typing import Any

import httpx

from support.fake_authorizer import right
from support.gateway_fixture import GatewayFixture

FIRST_AGENT_ID, SECOND_AGENT_ID = (
    "00000000-0000-7000-8000-000000000001",
    "00000000-0000-7000-8000-000000000002",
)
ALL_TOOLS = [right("tool", "call", "*")]


class AgentApiCaller:
    """Calls the agent API with one token."""

    def __init__(self, gateway: GatewayFixture, token: str) -> None:
        url, headers = f"http://127.0.0.1:{gateway.port}", {"Authorization": f"Bearer {token}"}
        self.http = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=20)

    async def post(self, body: Any, **more: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.http.post("/rpc", content=content, **more)

    async def request(self, method: str, **params: Any) -> Any:
        """Return the complete response."""
        return (
            await self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        ).json()

    async def call(self, method: str, **params: Any) -> Any:
        """Return the result."""
        response = await self.request(method, **params)
        assert "error" not in response, response
        return response["result"]

    async def error_code(self, method: str, **params: Any) -> str:
        """Return the error code."""
        error = (await self.request(method, **params))["error"]
        return str(error.get("data", {}).get("code", error["code"]))

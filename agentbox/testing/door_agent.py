"""An agent at the door, for tests: it calls with its token and looks at what is answered."""

import json
from typing import Any

import httpx

from agentbox.testing.gateway_room import Room
from agentbox.testing.told_authority import right

ONE, TWO = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"
ALL = [right("tool", "call", "*")]


class Agent:
    """Calls the door with one token."""

    def __init__(self, room: Room, token: str) -> None:
        url, head = f"http://127.0.0.1:{room.port}", {"Authorization": f"Bearer {token}"}
        self.http = httpx.AsyncClient(base_url=url, headers=head, trust_env=False, timeout=20)

    async def say(self, body: Any, **more: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.http.post("/rpc", content=content, **more)

    async def ask(self, method: str, **params: Any) -> Any:
        """The whole answer."""
        return (await self.say({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).json()

    async def call(self, method: str, **params: Any) -> Any:
        """The result."""
        answer = await self.ask(method, **params)
        assert "error" not in answer, answer
        return answer["result"]

    async def refused(self, method: str, **params: Any) -> str:
        """The word of the error."""
        error = (await self.ask(method, **params))["error"]
        return str(error.get("data", {}).get("code", error["code"]))

"""Clients of `/mcp` that are asked by servers: one turn at a time, and the official one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from support.mcp_box import McpBox

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
TUESDAY = {"action": "accept", "content": {"day": "Tuesday"}}


def said(result: Any) -> Any:
    """The JSON in the text of a result."""
    return json.loads(result["content"][0]["text"])


def raw(
    box: McpBox, token: str, name: str, capabilities: Any = FORMS, **params: Any
) -> dict[str, Any]:
    """A call of the stateless revision; the member `result` or `error`."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": {}, "_meta": meta, **params},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    url = f"http://127.0.0.1:{box.port}/mcp"
    answer = httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60).json()
    found: dict[str, Any] = answer.get("result") or answer["error"]
    return found


def answer(
    box: McpBox, token: str, name: str, asked: Any, given: Any = TUESDAY, **params: Any
) -> dict[str, Any]:
    """The next turn after `asked`, with the same answer to each question."""
    responses = dict.fromkeys(asked["inputRequests"], given)
    state = asked["requestState"]
    return raw(box, token, name, inputResponses=responses, requestState=state, **params)


@asynccontextmanager
async def client(
    box: McpBox, token: str, mode: str, reply: types.ElicitResult | None, asked: list[Any]
) -> AsyncIterator[Client]:
    """The official client, which gives every question that reply; None: it takes no questions."""

    async def on_question(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        assert reply is not None
        return reply

    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30
    ) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{box.port}/mcp", http_client=http)
        callback = on_question if reply is not None else None
        async with Client(transport, elicitation_callback=callback, mode=mode) as opened:  # type: ignore[arg-type]
            yield opened

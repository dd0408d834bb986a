"""What waits for a person at the agent API."""

from typing import Any

import httpx
import pytest
from support.agent_api_caller import (
    ALL_TOOLS,
    AgentApiCaller,
)
from support.fake_authorizer import right
from support.gateway_fixture import GatewayFixture

WAITS = ("tool:pod/*", "spawn:helper", "host:*.example.com")


@pytest.fixture
def asks(gateway: GatewayFixture) -> Any:
    """Calls the agent API as an agent that must request approval for three kinds of action."""
    rights = [right("tool", "call", "pod/read"), right("agent", "spawn", "*")]
    gateway.authorizer.add("asks", "a-token", rights, approval_required=WAITS, children=("helper",))

    async def call(method: str, **params: Any) -> Any:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
            answer = await http.post(
                f"http://127.0.0.1:{gateway.port}/rpc", headers={"Authorization": "Bearer a-token"},
                json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            )  # fmt: skip
        found = answer.json()
        return found.get("result") or found["error"].get("data", {}).get("code", "failed")

    return call


async def test_a_person_is_asked_with_the_real_parameters(
    gateway: GatewayFixture, asks: Any
) -> None:
    """Denied while no approver decides; then it is forwarded, here to an API that is not running."""
    assert await asks("pod.read", path="x") == "permission-denied"
    assert await asks("agent.spawn", name="helper") == "permission-denied"
    assert gateway.authorizer.approval_requests == [
        ("asks", "tool", "pod/read", {"path": "x"}),
        ("asks", "spawn", "helper", {"name": "helper"}),
    ]
    gateway.authorizer.approves = True
    assert await asks("pod.read", path="x") == "failed"


async def test_nobody_is_asked_for_what_is_refused_anyway(
    gateway: GatewayFixture, asks: Any
) -> None:
    """A right is checked first."""
    assert await asks("pod.write", path="x", content="y") == "permission-denied"
    assert gateway.authorizer.approval_requests == []


async def test_asked_ahead(gateway: GatewayFixture, asks: Any) -> None:
    """For actions that need approval, with its own comment; anything else is invalid."""
    gateway.authorizer.approves = True
    request = {"parameters": {"path": "z"}, "reason": "to keep it"}
    assert await asks("approval.request", kind="tool", value="pod/read", **request) == {
        "approved": True
    }
    assert await asks("approval.request", kind="host", value="a.example.com:443", **request) == {
        "approved": True
    }
    for wrong in (
        {"kind": "tool", "value": "bead/create"}, {"kind": "host", "value": "\x00"}, {"kind": "other", "value": "x"},
        {"kind": 1, "value": "pod/read"}, {"kind": "tool", "value": "pod/read", "parameters": []},
        {"kind": "tool", "value": "pod/read", "more": 1},
    ):  # fmt: skip
        assert await asks("approval.request", **wrong) == "validation"
    assert len(gateway.authorizer.approval_requests) == 2


async def test_what_waits_for_approval_is_refused(agent_api: GatewayFixture) -> None:
    """A right alone does not open it."""
    agent_api.authorizer.add("asks", "t3", ALL_TOOLS, approval_required=("tool:pod/*",))
    agent = AgentApiCaller(agent_api, "t3")
    assert await agent.error_code("pod.write", path="x", content="y") == "permission-denied"
    assert (await agent.request("identity.sign"))["error"]["data"]["code"] == "identity-disabled"
    await agent.http.aclose()

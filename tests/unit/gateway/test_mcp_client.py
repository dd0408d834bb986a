"""The official client of the Model Context Protocol at the agent API."""

from typing import Any

import httpx2
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from support.fake_authorizer import right
from support.gateway_fixture import TOKEN, GatewayFixture
from support.skills_box import install_skills

from agentbox.gateway.agent_api.mcp import HANDSHAKE_VERSIONS
from agentbox.gateway.agent_api.mcp_stateless import REVISION
from agentbox.manifest.skills.corpus import shipped_folders


async def test_the_official_client(gateway: GatewayFixture) -> None:
    """Agrees on the newest version, pings, lists the tools that rights allow, and reads a refusal as a result."""
    gateway.authorizer.set_rights(
        "one", [right("tool", "call", "bead/*"), right("tool", "call", "memory/*")]
    )
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
    ) as http:
        streams: Any
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        async with (
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            output = await session.initialize()
            assert (output.protocol_version, output.server_info.name) == (
                HANDSHAKE_VERSIONS[0],
                "agentbox",
            )
            await session.send_ping()
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert "bead_claim_next" in names
            assert not any(name.startswith("pod_") for name in names)
            done = await session.call_tool("pod_read", {"path": "x"})
            assert done.is_error
            assert "no right of the agent" in done.content[0].text  # type: ignore[union-attr]
    assert gateway.denied_rules == ["tool call"]


async def test_the_official_client_without_a_handshake(gateway: GatewayFixture) -> None:
    """It discovers the newest revision by itself, and works as with the older ones."""
    gateway.authorizer.set_rights("one", [right("tool", "call", "bead/*")])
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
    ) as http:
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        async with Client(streamable_http_client(url, http_client=http)) as client:
            assert client.session.protocol_version == REVISION
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "bead_claim_next" in names
            assert not any(name.startswith("pod_") for name in names)
            done = await client.call_tool("pod_read", {"path": "x"})
            assert done.is_error
    assert gateway.denied_rules == ["tool call"]


async def test_the_official_client_reads_skills(gateway: GatewayFixture) -> None:
    """As resources, which every client knows: listed with what they are for, and read."""
    install_skills(gateway.config.paths, names=["git-history"])
    gateway.authorizer.set_skills("one", ("git-*",))
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
    ) as http:
        streams: Any
        url = f"http://127.0.0.1:{gateway.port}/mcp"
        async with (
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            (resource,) = (await session.list_resources()).resources
            assert (resource.name, str(resource.uri)) == (
                "git-history",
                "skill://git-history/SKILL.md",
            )
            (content,) = (await session.read_resource(resource.uri)).contents
            file = shipped_folders()["git-history"] / "SKILL.md"
            assert content.text == file.read_text()  # type: ignore[union-attr]
            gateway.authorizer.set_rights("one", [])
            called = await session.call_tool("skill_read", {"name": "git-history"})
            assert called.is_error

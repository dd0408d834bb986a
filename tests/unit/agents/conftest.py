"""A client of the module's agent-host, and the authorizer that follows it. A module sets that host
with `box`."""

from collections.abc import AsyncIterator

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import follow_authorizations, open_orchestrator

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime import context
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.gateway.authorization_cache import AuthorizationCache


@pytest.fixture
async def adapter(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    """After a test no agent of it runs."""
    async with open_orchestrator(box) as found:
        yield found
        for one in (await found.list()).items:
            await found.terminate(one.handle, grace_s=0)


@pytest.fixture
async def authority(box: AgentHostBox) -> AsyncIterator[AuthorizationCache]:
    async with follow_authorizations(box) as found:
        yield found


@pytest.fixture
async def host(adapter: LocalProcessOrchestrator) -> AsyncIterator[AgentHost]:
    """With the rights of an admin; after a test no sandbox runs, and no review waits."""
    with context.as_caller(context.CORE):
        found = agent_host_client(lambda: adapter)
        yield found
        for one in (await found.list_sandboxes(limit=100, cursor=None)).items:
            await found.end_sandbox(one.sandbox_id, grace_s=0)
        for review in await found.list_reviews():
            await found.discard_review(review.agent_id, by="test")

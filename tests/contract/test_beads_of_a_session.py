"""Self-federation: beads of box B, which it has from a session with box A, meet the contract of the
slot. B's token is bound to B's name; B sees its own names."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.beads_common import LEASE, spec
from support.api_box import TOKEN
from support.federated_store import FederatedStore

from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.contracts.beads import BeadFilter
from agentbox.core.slot_errors import PermissionDenied


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = FederatedStore(
        "beads",
        "external-http",
        tmp_path,
        served="local-sqlite",
        clock=clock,
        options={"lease_seconds": 60},
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOfASession(BeadsContract):
    async def test_B01_names_are_those_of_the_box_at_the_host(self, store, adapter):
        """Locally unchanged; remotely below the name of the box, so that two boxes cannot act for
        one another."""
        epic, _ = await adapter.create_epic(spec("shared"))
        task, _ = await adapter.create_child(epic.id, spec("t"))
        await adapter.claim(task.id, "w", lease_id=LEASE)
        async with AsyncBoxClient(store.url, token=TOKEN) as operator:
            there = await operator.call("show_bead", {"id": task.id})
            theirs = await operator.call("create_epic", body={"title": "of the host"})
        assert (there["creator"], there["assignee"]) == (f"{store.name}:c", f"{store.name}:w")
        mine = await adapter.show(task.id)
        assert (mine.creator, mine.assignee) == ("c", "w")
        assert (
            await adapter.show(theirs["id"])
        ).creator == "urn:agentbox:host:urn:agentbox:operator"
        assert [bead.id for bead in (await adapter.list(BeadFilter(assignee="w"))).items] == [
            task.id
        ]

    async def test_B01_another_name_is_refused(self, adapter):
        """That of another box, even where it is written out."""
        with pytest.raises(PermissionDenied):
            await adapter.create_epic(
                spec("x", creator="urn:agentbox:box:5f1c2a3b-0000-4000-8000-000000000001:c")
            )

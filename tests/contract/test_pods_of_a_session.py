"""Self-federation: pods of box B, which it has from a session with box A, meet the contract of the
slot. B's root container is a container of A's that its token is bound to."""

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.pods import OPTIONS, PodsContract
from agentbox_testkit.contracts.pods_common import list_paths, read_body
from support.api_box import TOKEN
from support.federated_store import FederatedStore

from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.core.slot_errors import NotFound, ValidationError


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = FederatedStore(
        "pods", "external-solid", tmp_path, served="local-fs", clock=clock, options=OPTIONS
    )
    await made.serve()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.mark.transport
class TestOfASession(PodsContract):
    async def fill(self, store, adapter, paths):
        """As files of the host, which adopts them: a thousand requests would take longer than all
        the rest."""
        await adapter.write(paths[0], b"")
        (folder,) = (store.directory / "objects/boxes").iterdir()
        for path in paths[1:]:
            (folder / path).touch()

    async def test_P14_the_root_container_is_the_box_s_own(self, store, adapter):
        """Its objects are below the box's container at the host, and what is beside it is not
        visible."""
        assert (await adapter.list()).items == ()
        await adapter.write("a/b", b"1", content_type="text/plain; x=y")
        async with AsyncBoxClient(store.url, token=TOKEN) as operator:
            await operator.pods.write("boxes/other", b"2")
            members = await operator.pods.list("boxes/")
            mine = next(meta.path for meta in members.items if meta.kind == "container")
            assert await operator.pods.read(f"{mine}a/b") == b"1"
        assert await list_paths(adapter) == ["a/"]
        (member,) = (await adapter.list("a/")).items
        assert (member.content_type, member.size) == ("text/plain", 1)

    async def test_P13_nothing_leads_out_of_the_root_container(self, adapter):
        """The token is bound to it; a path that leads out is no path."""
        for path in ("../other", "%2e%2e/other", "/v1/pods/boxes/other"):
            with pytest.raises((ValidationError, NotFound)):
                await adapter.read(path)

    async def test_P13_private_data_that_the_host_masks_gives_another_tag(self, adapter):
        """Then the host returns no tag, and the object is read again: the result is what is stored."""
        meta, _ = await adapter.write(
            "a", b"mail to someone@example.org", content_type="text/plain"
        )
        assert meta == await adapter.head("a")
        assert meta.size == len(await read_body(adapter, "a"))

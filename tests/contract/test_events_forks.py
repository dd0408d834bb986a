"""A journal that was restored from a backup is a fork: at a sink it is another origin (V16)."""

import itertools
import shutil

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events_common import all_events, fill
from agentbox_testkit.contracts.events_delivery import box_events, wait_delivered, wait_for_trouble
from agentbox_testkit.local_store import LocalStore
from support.api_box import TOKEN, ApiBox

from agentbox.adapters.events.cloudevents import SINGLE, cloud_event
from agentbox.adapters.events.journal.epoch import write_epoch
from agentbox.client import ApiError
from agentbox.client.async_client.client import AsyncBoxClient

NAMES = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The box that is the sink."""
    with ApiBox(tmp_path_factory.mktemp("host"), orchestrator=False) as box:
        yield box


@pytest_asyncio.fixture
async def reader(host):
    async with AsyncBoxClient(host.url, token=TOKEN) as client:
        yield client


@pytest.fixture
def name():
    """Of the box that delivers: another for each test."""
    return f"box-{next(NAMES)}"


@pytest_asyncio.fixture
async def store(tmp_path, host, reader, name):
    """The box that delivers."""
    wanted = {"name": name, "scopes": ["events:write"], "origin_box": name}
    token = (await reader.call("create_token", body=wanted))["value"]
    options = {"endpoint": f"{host.url}/v1/events", "timeout_seconds": 10}
    made = LocalStore(
        "events", "external-http", tmp_path, options=options, secrets={"token": token}
    )
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


async def test_V16_a_restored_journal_is_another_origin(adapter, store, reader, name):
    """A fork of the journal is held as it is. With an epoch its records are those of `NAME~EPOCH`,
    and the records of the first journal stay as they were."""
    await fill(adapter, 20)
    await wait_delivered(adapter)
    await store.close_all()
    fork = store.sibling("fork")
    shutil.copytree(store.cfg.directory, fork.cfg.directory)
    first = await store.open()
    await fill(first, 5)
    await wait_delivered(first)
    here = await all_events(first)
    held = await fork.open()
    await fill(held, 7)
    assert "belongs to another journal" in (await wait_for_trouble(held)).held
    await held.close()

    write_epoch(fork.cfg.directory, 3)
    restored = await fork.open()
    await fill(restored, 1)
    await wait_delivered(restored)
    there, known = await box_events(reader, f"{name}~3"), await all_events(restored)
    assert [event.origin.hash for event in there] == [event.hash for event in known[20:]]
    assert [event.hash for event in here] == [
        event.origin.hash for event in await box_events(reader, name)
    ]
    assert (await reader.call("verify_events", body={}))["ok"]
    await restored.close()


@pytest.mark.parametrize("epoch", ["0", "-1", "x", "01", 7])
async def test_V16_an_epoch_that_is_not_a_number_is_refused(adapter, store, host, epoch):
    """A sink would store its records under a name that nobody can read back."""
    await fill(adapter, 1)
    row = cloud_event((await all_events(adapter))[0]) | {"agentboxepoch": epoch}
    async with AsyncBoxClient(host.url, token=store.cfg.secrets["token"]) as client:
        with pytest.raises(ApiError, match="agentboxepoch"):
            await client.call("append_events", body=row, headers={"Content-Type": SINGLE})

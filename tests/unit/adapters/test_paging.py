"""A page is bounded in bytes, too, and its cursor continues after its last item."""

from agentbox.adapters.runtime.paging import PAGE_BYTES
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.core.records.wire import to_json

LARGE = "x" * 60_000
MANY = 40  # of them are more than two pages


async def pages(read):
    """All pages of a listing."""
    found, cursor = [], None
    while not found or cursor:
        found.append(await read(cursor))
        cursor = found[-1].next_cursor
    return found


def check(found):
    assert len(found) > 2
    assert max(len(to_json(page)) for page in found) < PAGE_BYTES * 1.1
    return [item for page in found for item in page.items]


async def test_pages_of_memory(box):
    """Entries of a listing, and hits of a search: the best ones."""
    async with box.started({"memory": "local-sqlite"}) as container:
        for number in range(MANY):
            await container.memory.store(f"{number:02}", {"text": f"word{number} same {LARGE}"})
        items = check(await pages(lambda cursor: container.memory.list(limit=500, cursor=cursor)))
        assert [item.key for item in items] == [f"{number:02}" for number in range(MANY)]
        hits = await container.memory.search("same", limit=100, mode="text")
        assert 5 < len(hits) < MANY
        assert len(to_json(hits)) < PAGE_BYTES * 1.1


async def test_pages_of_beads(box):
    """By any filter, and those that are ready."""
    async with box.started() as container:
        epic, _ = await container.beads.create_epic(BeadSpec(title="all", creator="test"))
        for number in range(MANY):
            await container.beads.create_child(
                epic.id, BeadSpec(title=f"{number:02}", creator="test", body=LARGE)
            )
        ready = check(await pages(lambda cursor: container.beads.ready(limit=500, cursor=cursor)))
        assert sorted(bead.title for bead in ready) == [f"{number:02}" for number in range(MANY)]
        assert (
            len(check(await pages(lambda cursor: container.beads.list(limit=500, cursor=cursor))))
            == MANY + 1
        )


async def test_batches_of_events(box):
    """`next_since` continues after the last item of the page; one filter or none."""
    async with box.started() as container:
        for number in range(MANY):
            await container.events.append(
                (NewEvent(type="test.large", source="urn:x", data={"n": number, "text": LARGE}),)
            )
        since, told, batches = -1, [], 0
        head, _ = await container.events.head()
        while since < head:
            batch = await container.events.read(since=since, limit=1000)
            assert len(to_json(batch)) < PAGE_BYTES * 1.1
            told += [event.data["n"] for event in batch.events if event.type == "test.large"]
            since, batches = batch.next_since, batches + 1
        assert told == list(range(MANY))
        assert batches > 2

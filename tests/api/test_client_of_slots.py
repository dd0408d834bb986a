"""The typed clients of pods and memory, sync and async, against a real box."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from support.api_box import TOKEN, ApiBox
from support.ports import free_port

from agentbox.client import ApiError, AsyncBoxClient, BoxClient, BoxUnreachable

SIZE = 5 << 20


class Waiting:
    """A synchronous client with the calls of the asynchronous one, so that each test runs for both."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(found, *args, **kwargs)

        return call


@pytest_asyncio.fixture(params=["sync", "async"])
async def slots(request: pytest.FixtureRequest, box: ApiBox) -> AsyncIterator[tuple[Any, Any]]:
    """The clients of pods and of memory."""
    if request.param == "sync":
        with BoxClient(box.url, token=TOKEN) as client:
            yield Waiting(client.pods), Waiting(client.memory)
        return
    async with AsyncBoxClient(box.url, token=TOKEN) as other:
        yield other.pods, other.memory


async def test_an_object_goes_round(slots: tuple[Any, Any]) -> None:
    """Written, described, read in part, patched, listed, deleted; conditions are checked."""
    pods, _ = slots
    folder = f"c{uuid.uuid4().hex[:8]}/"
    made, created = await pods.write(
        f"{folder}a b", b'{"n":1}', content_type="application/json", if_none_match="*"
    )
    assert created
    meta = await pods.head(f"{folder}a b")
    assert (meta.etag, meta.size, meta.content_type, meta.kind) == (
        made.etag,
        7,
        "application/json",
        "object",
    )
    assert await pods.read(f"{folder}a b", byte_range=(1, 3)) == b'"n"'
    patched = await pods.patch(
        f"{folder}a b", b'[{"op":"replace","path":"/n","value":2}]', if_match=made.etag
    )
    assert (patched.etag != made.etag, await pods.read(f"{folder}a b")) == (True, b'{"n":2}')
    with pytest.raises(ApiError) as stale:
        await pods.write(f"{folder}a b", b"", if_match=made.etag)
    assert (stale.value.status, stale.value.code) == (412, "precondition-failed")
    await pods.write(f"{folder}deep/x", b"")
    first = await pods.list(folder, limit=1)
    rest = await pods.list(folder, cursor=first.next_cursor)
    assert [meta.path for meta in (*first.items, *rest.items)] == [f"{folder}a b", f"{folder}deep/"]
    assert rest.next_cursor is None
    assert (await pods.head(folder)).kind == "container"
    await pods.delete(f"{folder}a b")
    with pytest.raises(ApiError) as gone:
        await pods.read(f"{folder}a b")
    assert gone.value.status == 404
    with pytest.raises(ValueError, match="segment"):
        await pods.read("a/../b")


async def test_an_entry_goes_round(slots: tuple[Any, Any]) -> None:
    """Stored, found, listed, counted, deleted; a missing entry is None or False."""
    _, memory = slots
    ns = f"c{uuid.uuid4().hex[:8]}"
    entry, created = await memory.store(
        "a/b", {"x": "a whale"}, namespace=ns, metadata={"n": 1}, ttl_s=1000
    )
    assert (created, entry.text, entry.metadata, entry.expires_at is not None) == (
        True,
        "a whale",
        {"n": 1},
        True,
    )
    assert await memory.retrieve("a/b", namespace=ns) == entry
    assert not (await memory.store("a/b", "another whale", namespace=ns))[1]
    (hit,) = await memory.search("whale", namespaces=(ns,), mode="text")
    assert (hit.entry.key, hit.score > 0) == ("a/b", True)
    assert await memory.search("whale", namespaces=(ns,), filter={"n": 9}) == ()
    page = await memory.list(namespace=ns, prefix="a", limit=1)
    assert ([found.key for found in page.items], page.next_cursor) == (["a/b"], None)
    assert (await memory.stats(ns)).entries == 1
    assert await memory.delete("a/b", namespace=ns)
    assert not await memory.delete("a/b", namespace=ns)
    assert await memory.retrieve("a/b", namespace=ns) is None
    with pytest.raises(ApiError) as caught:
        await memory.store("k", 1, namespace="NO")
    assert caught.value.status == 400


def test_a_large_object_is_streamed(box: ApiBox) -> None:
    """Both ways, in pieces."""
    body = uuid.uuid4().bytes * (SIZE // 16)

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(body), 100_000):
            yield body[at : at + 100_000]

    with BoxClient(box.url, token=TOKEN) as client:
        client.pods.write("large", pieces())
        found = hashlib.sha256()
        with client.pods.open("large") as (meta, body_of):
            for piece in body_of:
                found.update(piece)
    assert (meta.size, found.hexdigest()) == (len(body), hashlib.sha256(body).hexdigest())


async def test_a_large_object_is_streamed_async(box: ApiBox) -> None:
    """The same with the asynchronous client; an error is raised as one."""
    body = uuid.uuid4().bytes * (SIZE // 16)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 100_000):
            yield body[at : at + 100_000]

    async with AsyncBoxClient(box.url, token=TOKEN) as client:
        await client.pods.write("large", pieces())
        async with client.pods.open("large", byte_range=(5, None)) as (meta, body_of):
            assert b"".join([piece async for piece in body_of]) == body[5:]
        assert meta.size == len(body)
        with pytest.raises(ApiError) as caught:
            async with client.pods.open("none"):
                raise AssertionError("never opened")
        assert caught.value.code == "not-found"
    async with AsyncBoxClient(f"http://127.0.0.1:{free_port()}") as nobody:
        with pytest.raises(BoxUnreachable):
            await nobody.pods.read("x")

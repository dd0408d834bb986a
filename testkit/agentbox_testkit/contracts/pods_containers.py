"""P6, P7, P9 and the common clauses for pods: members, names, atomic writes."""

import asyncio
import json
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from agentbox.adapters.pods.paths import MAX_SEGMENT
from agentbox.core.slot_errors import ContainerNotEmpty, NotFound, ValidationError
from agentbox_testkit.contracts.common import expect_error, transport
from agentbox_testkit.contracts.pods_common import (
    descriptor_count,
    in_chunks,
    list_paths,
    read_body,
)
from agentbox_testkit.wait import wait_until

ODD = ("\u00e9", "e\u0301", "a b", "\U0001f600", "%2e%2e", "a?b#c", "'\";--", "...")


class ContainerClauses:
    """Containers and valid names."""

    longest: ClassVar[int] = MAX_SEGMENT  # maximum bytes of a name in the backend

    async def test_P06_what_was_deleted_is_gone(self, adapter: Any) -> None:
        """An object, then its empty container; a missing path is NotFound, a non-empty container is
        rejected.
        """
        await adapter.write("a/b", b"1")
        await expect_error(ContainerNotEmpty, adapter.delete("a/"))
        await adapter.delete("a/b")
        for call in (
            adapter.read("a/b"),
            adapter.head("a/b"),
            adapter.delete("a/b"),
            adapter.delete("x/"),
        ):
            await expect_error(NotFound, call)
        await adapter.delete("a/")
        await expect_error(NotFound, adapter.head("a/"))
        assert await list_paths(adapter) == []

    @transport
    async def test_P07_list_is_exactly_the_direct_members(self, adapter: Any) -> None:
        """Objects and containers, each with kind and size; a new one appears, a deleted one
        disappears.
        """
        await adapter.write("a/one", b"1")
        await adapter.write("a/deep/er/two", b"22")
        await adapter.write("b", b"333")
        listed = {meta.path: (meta.kind, meta.size) for meta in (await adapter.list("a/")).items}
        assert listed == {"a/one": ("object", 1), "a/deep/": ("container", None)}
        assert await list_paths(adapter) == ["a/", "b"]
        await adapter.write("a/new", b"")
        await adapter.delete("a/one")
        assert await list_paths(adapter, "a/") == ["a/deep/", "a/new"]
        new, head = (await adapter.list("a/")).items[1], await adapter.head("a/new")
        assert new == replace(head, etag=new.etag)
        assert new.etag in (head.etag, None)
        await expect_error(NotFound, adapter.list("x/"))

    async def fill(self, store: Any, adapter: Any, paths: list[str]) -> None:
        """Create empty objects, many at once; a suite may override it with a faster way."""
        for start in range(0, len(paths), 50):
            await asyncio.gather(*(adapter.write(path, b"") for path in paths[start : start + 50]))

    @pytest.fixture
    def members(self) -> int:
        """A suite may override it; more than two pages of 77."""
        return 1000

    async def test_P07_a_thousand_members_page_without_loss(
        self, store: Any, adapter: Any, members: int
    ) -> None:
        """Each once, whatever the page size."""
        names = [f"c/{number:04}" for number in range(members)]
        await self.fill(store, adapter, names)
        assert sorted(await list_paths(adapter, "c/", limit=77)) == names

    @transport
    async def test_C06_a_foreign_cursor_or_limit_is_refused(self, adapter: Any) -> None:
        """A cursor of another container, an invalid one; a page of 1 to 500."""
        for name in ("a/1", "a/2", "b/1"):
            await adapter.write(name, b"")
        cursor = (await adapter.list("a/", limit=1)).next_cursor
        for call in (
            adapter.list("b/", cursor=cursor),
            adapter.list("a/", cursor="bm9ib2R5"),
            adapter.list(limit=0),
            adapter.list(limit=501),
        ):
            await expect_error(ValidationError, call)

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/a",
            "a//b",
            "a/../b",
            "..",
            ".",
            "a/.",
            "a\\b",
            "a\x00b",
            "a\nb",
            "a\x7fb",
            "x" * 256,
            "\u00e9" * 128,
            "/".join(["x" * 200] * 6),
            ".agentbox-x",
            "a/.agentbox",
            "a\ud800b",
        ],
    )
    async def test_P09_a_bad_path_is_refused_never_mended(self, adapter: Any, path: str) -> None:
        """By every method."""
        for call in (
            adapter.write(path, b""),
            adapter.read(path),
            adapter.head(path),
            adapter.patch(path, b"[]"),
            adapter.delete(path),
        ):
            await expect_error(ValidationError, call)
        if path:
            await expect_error(ValidationError, adapter.list(f"{path}/"))
        assert await list_paths(adapter) == []

    async def test_P09_an_object_is_no_container(self, adapter: Any) -> None:
        """And vice versa; nothing of either is lost."""
        await adapter.write("a/b", b"1")
        for call in (
            adapter.write("a", b""),
            adapter.write("a/", b""),
            adapter.write("a/b/c", b""),
            adapter.list("a"),
        ):
            await expect_error(ValidationError, call)
        await expect_error(NotFound, adapter.delete("a/b/"))
        assert await read_body(adapter, "a/b") == b"1"

    @transport
    async def test_C07_names_and_types_round_trip(self, adapter: Any) -> None:
        """Code point by code point."""
        odd = (*ODD, "x" * self.longest)
        for name in odd:
            await adapter.write(name, name.encode(), content_type='text/x; a="b"')
        assert sorted(await list_paths(adapter)) == sorted(odd)
        for name in odd:
            assert await read_body(adapter, name) == name.encode()
        for kind in ("", "text", "a/b\r\nX: y", "a/\u00e9", "a/b\0", "a/" + "x" * 255):
            await expect_error(ValidationError, adapter.write("a", b"", content_type=kind))

    async def test_P08_a_reader_sees_one_body_whole(self, adapter: Any) -> None:
        """While it is repeatedly replaced by others of other sizes."""
        bodies = {bytes([65 + n]) * (20_000 * (n + 1)) for n in range(8)}
        await adapter.write("a", min(bodies))
        done = asyncio.Event()

        async def write() -> None:
            for body in list(bodies) * 3:
                await adapter.write("a", in_chunks(body, 9999))
            done.set()

        async def read() -> int:
            count = 0
            while not done.is_set():
                stored = await adapter.read("a")
                body = b"".join([chunk async for chunk in stored.body])
                assert body in bodies
                assert len(body) == stored.meta.size
                count += 1
            return count

        _, *counts = await asyncio.gather(write(), read(), read(), read())
        assert min(counts) > 0

    @transport
    async def test_P08_no_temporary_name_is_ever_listed(self, adapter: Any) -> None:
        """While a body is being sent, and after its caller disconnected."""
        await adapter.write("a/c", b"")
        started = asyncio.Event()

        async def slow() -> Any:
            yield b"x"
            started.set()
            await asyncio.sleep(3600)
            yield b"y"

        task = asyncio.ensure_future(adapter.write("a/b", slow()))
        await started.wait()
        assert await list_paths(adapter, "a/") == ["a/c"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await list_paths(adapter, "a/") == ["a/c"]

    @transport
    async def test_C05_a_cancelled_write_is_whole_or_not_there(
        self, store: Any, adapter: Any
    ) -> None:
        """After any cancellation; no descriptor stays open."""
        before = descriptor_count()
        tasks = [asyncio.create_task(adapter.write(f"{n}", b"%d" % n * 100)) for n in range(60)]
        for index, task in enumerate(tasks):
            if index % 3 == 0:
                await asyncio.sleep(0.001)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for path in await list_paths(adapter):
            assert await read_body(adapter, path) == path.encode() * 100
        await adapter.close()
        await store.open()  # with as many descriptors as the first
        await wait_until(lambda: descriptor_count() <= before, "every descriptor is closed")

    @transport
    async def test_C08_what_was_acknowledged_survives_a_kill(self, store: Any) -> None:
        """After SIGKILL of the writing process every acknowledged object exists, and no other is
        torn.
        """
        async with store.worker("write-objects") as worker:
            acknowledged = [json.loads(await worker.stdout.readline()) for _ in range(100)]
            worker.kill()
            remainder, _ = await worker.communicate()
        acknowledged += [json.loads(line) for line in remainder.split(b"\n")[:-1]]
        adapter = await store.open()
        last = {line["path"]: line["n"] for line in acknowledged}
        for path, number in last.items():
            stored = json.loads(await read_body(adapter, path))
            assert stored["n"] >= number
            assert len(stored["fill"]) == 5000

    @pytest.fixture
    def increments(self) -> int:
        """Of one object, by each process."""
        return 40

    async def test_C11_two_processes_on_one_store(
        self, store: Any, adapter: Any, increments: int
    ) -> None:
        """Read-modify-write from both: no update is lost."""
        await adapter.write("n", b"0")
        async with (
            store.worker("count-up", f"{increments}") as first_worker,
            store.worker("count-up", f"{increments}") as second_worker,
        ):
            await asyncio.gather(first_worker.communicate(), second_worker.communicate())
            assert (first_worker.returncode, second_worker.returncode) == (0, 0)
        assert await read_body(adapter, "n") == b"%d" % (2 * increments)

    @transport
    async def test_C11_thirty_two_tasks_on_one_instance(self, adapter: Any) -> None:
        """Concurrent mixed operations leave a consistent store."""

        async def work(number: int) -> None:
            path = f"c{number % 4}/{number}"
            meta, _ = await adapter.write(path, b"[]", content_type="application/json")
            after = await adapter.patch(
                path, b'[{"op":"add","path":"/0","value":1}]', if_match=meta.etag
            )
            assert await read_body(adapter, path) == b"[1]"
            if number % 2:
                await adapter.delete(path, if_match=after.etag)

        await asyncio.gather(*(work(number) for number in range(32)))
        remaining = [path for n in range(4) for path in await list_paths(adapter, f"c{n}/")]
        assert sorted(remaining) == sorted(f"c{n % 4}/{n}" for n in range(0, 32, 2))

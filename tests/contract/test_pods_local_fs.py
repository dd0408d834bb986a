"""pods local-fs meets the contract of the slot, and the further promises of plain files in a
directory (P8, P10, P12)."""

import json
import os
import signal

import apsw
import pytest
import pytest_asyncio
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.pods import OPTIONS, PodsContract
from agentbox_testkit.contracts.pods_common import list_paths, read_body
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.pods.local.index import Intent
from agentbox.core.slot_errors import IntegrityError, NotFound, PermissionDenied, QuotaExceeded


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = LocalStore("pods", "local-fs", tmp_path, clock=clock, options=OPTIONS)
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


def totals(store):
    """Bytes and objects as the index counts them, and as the files do."""
    db = apsw.Connection(str(store.directory / "index.db"))
    counted = next(iter(db.execute("SELECT bytes, objects FROM totals")))
    left = next(iter(db.execute("SELECT count(*) FROM intents")))[0]
    files = [path for path in (store.directory / "objects").rglob("*") if path.is_file()]
    return counted, (sum(path.stat().st_size for path in files), len(files)), left


class TestLocalFs(PodsContract):
    async def test_P03_the_tag_is_that_of_the_content(self, adapter):
        """The same for the same body and type, in pieces or not."""

        async def in_pieces():
            yield b"12"
            yield b"3"

        first, _ = await adapter.write("a", b"123")
        assert [
            (await adapter.write(path, body))[0].etag
            for path, body in (("a", b"123"), ("b", in_pieces()))
        ] == [first.etag] * 2

    async def test_P07_members_come_in_byte_order(self, adapter):
        """Of their names, across pages."""
        for name in ("b", "a", "\u00e9", "B", "a-", "a/x"):
            await adapter.write(f"c/{name}" if "/" not in name else f"c/z{name}", b"")
        assert await list_paths(adapter, "c/", limit=2) == [
            "c/B",
            "c/a",
            "c/a-",
            "c/b",
            "c/za/",
            "c/\u00e9",
        ]

    @pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "second-name"])
    async def test_P10_what_is_no_plain_file_is_refused_and_not_listed(self, store, adapter, kind):
        """Nor is what it leads to touched."""
        outside = store.prefix / "outside"
        outside.write_bytes(b"secret")
        at = store.directory / "objects" / "x"
        match kind:
            case "link":
                at.symlink_to(outside)
            case "dangling":
                at.symlink_to(store.prefix / "none")
            case "fifo":
                os.mkfifo(at)
            case "second-name":
                at.hardlink_to(outside)
        for call in (
            adapter.read("x"),
            adapter.head("x"),
            adapter.write("x", b"2"),
            adapter.patch("x", b"[]"),
            adapter.delete("x"),
        ):
            await expect_error(PermissionDenied, call)
        assert await list_paths(adapter) == []
        assert outside.read_bytes() == b"secret"
        assert not (store.prefix / "none").exists()

    async def test_P10_a_folder_that_is_a_link_is_refused(self, store, adapter):
        """Anywhere on the way."""
        outside = store.prefix / "outside"
        (outside / "deep").mkdir(parents=True)
        (outside / "deep" / "a").write_bytes(b"secret")
        (store.directory / "objects" / "x").symlink_to(outside)
        for call in (
            adapter.read("x/deep/a"),
            adapter.write("x/b", b""),
            adapter.write("x/deep/b", b""),
            adapter.list("x/"),
            adapter.delete("x/deep/a"),
            adapter.head("x/"),
        ):
            await expect_error(PermissionDenied, call)
        assert await list_paths(adapter) == []
        assert sorted(path.name for path in outside.rglob("*")) == ["a", "deep"]

    async def test_P10_a_folder_swapped_for_a_link_does_not_escape(self, store, adapter):
        """While a body is on its way into it."""
        outside, folder = store.prefix / "outside", store.directory / "objects" / "c"
        outside.mkdir()

        async def body():
            yield b"1"
            folder.rename(store.directory / "objects" / "moved")
            folder.symlink_to(outside)
            yield b"2"

        await adapter.write("c/seed", b"")
        await adapter.write("c/a", body())
        assert list(outside.iterdir()) == []
        await expect_error(PermissionDenied, adapter.read("c/a"))

    async def test_P12_files_put_there_by_hand_are_adopted(self, store, adapter):
        """With a tag and in the totals; an edited one gets a new tag, a removed one is missing."""
        root = store.directory / "objects"
        (root / "d").mkdir()
        (root / "d" / "a").write_bytes(b"1")
        first = await adapter.head("d/a")
        assert (first.size, first.content_type) == (1, "application/octet-stream")
        assert await read_body(adapter, "d/a") == b"1"
        (root / "d" / "a").write_bytes(b"22")
        assert (await adapter.head("d/a")).etag != first.etag
        assert await list_paths(adapter, "d/") == ["d/a"]
        assert totals(store)[0] == (2, 1)
        (root / "d" / "a").unlink()
        await expect_error(NotFound, adapter.read("d/a"))
        await adapter.write("d/b", b"1", if_none_match="*")
        await expect_error(NotFound, adapter.delete("d/a"))
        assert totals(store) == ((1, 1), (1, 1), 0)

    async def test_P11_objects_are_counted_too(self, store):
        """The number has a quota of its own."""
        adapter = await store.with_options(quota_objects=3).open()
        for name in "abc":
            await adapter.write(name, b"")
        error = await expect_error(QuotaExceeded, adapter.write("d", b""))
        assert error.members["config_path"] == "adapters.pods.quota_objects"
        await adapter.write("a", b"again")
        await adapter.delete("b")
        await adapter.write("d", b"")

    async def test_P08_a_kill_at_any_point_leaves_old_or_new(self, store, full):
        """5 kills, 20 with --full, of a process that writes without end: index and files agree
        afterwards, nothing is under way."""
        for round_ in range(0, 20, 1 if full else 4):
            async with store.worker("write-objects") as worker:
                for _ in range(5 + 3 * round_):
                    await worker.stdout.readline()
                worker.send_signal(signal.SIGKILL)
                await worker.communicate()
            adapter = await store.open()
            for container in await list_paths(adapter):
                for path in await list_paths(adapter, container):
                    assert len(json.loads(await read_body(adapter, path))["fill"]) == 5000
            counted, real, left = totals(store)
            assert counted == real
            assert left == 0
            await store.close_all()

    @pytest.mark.parametrize(
        "step", ["before the file", "before the rename", "after the rename", "deleted"]
    )
    async def test_P08_open_finishes_or_undoes_what_a_dead_instance_began(self, store, step):
        """Each point at which it may have died."""
        adapter = await store.open()
        meta, _ = await adapter.write("c/a", b"new", content_type="text/x")
        if step != "after the rename":
            await adapter.write("c/a", b"old", content_type="text/y")
        await store.close_all()
        folder, db = (
            store.directory / "objects" / "c",
            apsw.Connection(str(store.directory / "index.db")),
        )
        left = Intent(
            "i",
            5,
            "c/a",
            "delete" if step == "deleted" else "write",
            ".agentbox-i",
            "text/x",
            meta.etag,
            0,
            0,
        )
        db.execute(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [getattr(left, name) for name in left.__slots__],
        )
        match step:
            case "before the rename":
                (folder / ".agentbox-i").write_bytes(b"new")
            case "after the rename":
                db.execute(
                    "UPDATE objects SET content_type = 'text/y', etag = 'old', inode = 0, size = 7"
                )
                db.execute("UPDATE totals SET bytes = 7")
            case "deleted":
                (folder / "a").unlink()
        db.close()
        adapter = await store.open()
        if step == "deleted":
            await expect_error(NotFound, adapter.head("c/a"))
        else:
            want = (b"new", "text/x") if step == "after the rename" else (b"old", "text/y")
            assert (
                await read_body(adapter, "c/a"),
                (await adapter.head("c/a")).content_type,
            ) == want
        counted, real, under_way = totals(store)
        assert (counted, under_way) == (real, 0)
        assert [path.name for path in folder.glob(".*")] == []

    async def test_P08_a_living_instance_is_left_alone(self, store):
        """A second one opens while the first receives a body."""
        first = await store.open()

        async def body():
            yield b"1"
            await store.open()
            yield b"2"

        await first.write("a", body())
        assert await read_body(first, "a") == b"12"

    async def test_C09_a_newer_store_is_refused(self, store):
        """With a message; its content stays unchanged."""
        await store.open()
        await store.close_all()
        db = apsw.Connection(str(store.directory / "index.db"))
        db.execute("INSERT INTO migrations VALUES (99, 'x')")
        db.close()
        with pytest.raises(IntegrityError, match="newer than"):
            await store.open()

"""M1, M2, M4, M5, M9 and M10: storage, isolation, deletion and rejection."""

import asyncio
import json
from typing import Any

import pytest

from agentbox.core.slot_errors import QuotaExceeded, ValidationError, ValueTooLarge
from agentbox_testkit.contracts.common import expect_error, not_refused, transport
from agentbox_testkit.contracts.memory_common import ENTRIES, SIZE, list_keys, search_keys

ODD = "\u0001 \ufeff \U0001f600 e\u0301 \u00e9 \u202e \r\n\t '\";-- NEAR *"
NESTED = {"a": "first", "b": [1, "second", {"c": "third", "d": None}], "e": True}

OUT_OF_BOUNDS: tuple[dict[str, Any], ...] = (
    {"key": ""},
    {"key": "x" * 513},
    {"key": "\u00e9" * 257},
    {"key": "a/../b"},
    {"key": "."},
    {"key": "a\0"},
    {"key": "\ud800"},
    {"namespace": ""},
    {"namespace": "A"},
    {"namespace": ".a"},
    {"namespace": "a" * 129},
    {"namespace": "a/b"},
    {"metadata": {f"{n}": n for n in range(33)}},
    {"metadata": {"a": []}},
    {"metadata": {"a": {"b": 1}}},
    {"ttl_s": 0},
    {"ttl_s": -1},
    {"ttl_s": True},
    {"text": "a\0"},
    {"value": "a\0"},
    {"value": float("nan")},
)


class EntryClauses:
    """Entries by key."""

    @transport
    async def test_M01_what_is_stored_is_retrieved(self, adapter: Any) -> None:
        """Equal value, metadata and text; the record is the one from store."""
        entry, created = await adapter.store(
            "k", NESTED, text="words", metadata={"s": "x", "n": 1.5, "b": True, "z": None}
        )
        assert created
        assert (entry.value, entry.text, entry.key, entry.namespace) == (
            NESTED,
            "words",
            "k",
            "default",
        )
        assert entry.metadata == {"s": "x", "n": 1.5, "b": True, "z": None}
        assert await adapter.retrieve("k") == entry
        assert await adapter.retrieve("other") is None

    async def test_M01_a_second_store_overwrites(self, adapter: Any, clock: Any) -> None:
        """Keeps created_at, reports that nothing was created, and keeps nothing of the first."""
        first, _ = await adapter.store("k", 1, metadata={"a": 1}, ttl_s=60)
        clock.advance(5)
        second, created = await adapter.store("k", [2])
        assert (created, second.value, second.metadata, second.expires_at) == (False, [2], {}, None)
        assert (second.created_at, second.updated_at > first.updated_at) == (first.created_at, True)
        assert await adapter.retrieve("k") == second

    async def test_M01_text_defaults_to_the_strings_of_the_value(self, adapter: Any) -> None:
        """In document order, one per line; keys are not text."""
        for value, text in (
            ("a b", "a b"),
            (NESTED, "first\nsecond\nthird"),
            (7, ""),
            ({"k": "v"}, "v"),
        ):
            assert (await adapter.store("k", value))[0].text == text

    async def test_M02_namespaces_are_apart(self, adapter: Any) -> None:
        """In every method; the same key in two namespaces is two entries."""
        await adapter.store("k", "blue whale", namespace="a")
        await adapter.store("k", "blue sky", namespace="b")
        assert (await adapter.retrieve("k", namespace="a")).value == "blue whale"
        assert await adapter.retrieve("k") is None
        assert [hit.entry.namespace for hit in await adapter.search("blue", namespaces=("b",))] == [
            "b"
        ]
        assert len(await adapter.search("blue", namespaces=("a", "b"))) == 2
        assert await adapter.search("blue") == ()
        assert await list_keys(adapter, namespace="a") == ["k"]
        assert (await adapter.stats("a")).entries == 1
        assert ((await adapter.stats()).entries, (await adapter.stats()).namespaces) == (
            2,
            ("a", "b"),
        )
        assert await adapter.delete("k", namespace="a")
        assert not await adapter.delete("k", namespace="a")
        assert (await adapter.retrieve("k", namespace="b")).value == "blue sky"

    async def test_M04_what_has_expired_is_invisible_at_once(
        self, adapter: Any, clock: Any
    ) -> None:
        """In every method; storing it again creates it."""
        await adapter.store("k", "blue whale", ttl_s=60)
        await adapter.store("stays", "blue sky", ttl_s=120)
        clock.advance(60)
        assert await adapter.retrieve("k") is None
        assert await list_keys(adapter) == ["stays"]
        for mode in ("hybrid", "vector", "text"):
            assert await search_keys(adapter, "blue whale", mode=mode) == ["stays"]
        assert (await adapter.stats()).entries == 1
        assert not await adapter.delete("k")
        assert (await adapter.store("k", "again"))[1]

    async def test_M04_a_sweep_removes_it_within_a_minute(
        self, store: Any, adapter: Any, clock: Any
    ) -> None:
        """And frees its share of the quota."""
        for number in range(ENTRIES):
            await adapter.store(f"{number}", number, ttl_s=10)
        clock.advance(10)
        clock.advance(60)
        for number in range(ENTRIES):
            await adapter.store(f"new-{number}", number)

    @pytest.mark.parametrize("how", ["delete", "overwrite"])
    async def test_M05_the_old_text_is_never_a_hit_again(
        self, store: Any, adapter: Any, how: str
    ) -> None:
        """In either index, also after reopen."""
        await adapter.store("k", "zebra crossing")
        await adapter.store("other", "a quiet afternoon")
        if how == "delete":
            assert await adapter.delete("k")
        else:
            await adapter.store("k", "something else entirely")
        for reopened in (False, True):
            current = await store.reopen() if reopened else adapter
            assert await current.search("zebra crossing", mode="text") == ()
            for mode in ("vector", "hybrid"):
                assert all(
                    "zebra" not in hit.entry.text
                    for hit in await current.search("zebra crossing", mode=mode)
                )
                assert all(
                    (hit.cosine or 0) < 0.9
                    for hit in await current.search("zebra crossing", mode=mode)
                )

    async def test_M05_delete_of_an_unknown_key_is_false(self, adapter: Any) -> None:
        assert not await adapter.delete("none")

    async def test_M09_the_model_is_told(self, adapter: Any) -> None:
        """Its id and length, in stats, with the quotas."""
        stats = await adapter.stats()
        assert stats.model_id.startswith("static-256/")
        assert stats.dims == 256
        assert stats.quotas == {"namespace_size": SIZE, "namespace_entries": ENTRIES}

    @transport
    async def test_M10_what_is_out_of_bounds_is_refused(self, adapter: Any) -> None:
        """And nothing is stored."""

        async def store(given: dict[str, Any]) -> Any:
            arguments = {"key": "k", "value": 1, **given}
            return await adapter.store(arguments.pop("key"), arguments.pop("value"), **arguments)

        assert await not_refused(ValidationError, OUT_OF_BOUNDS, store) == []
        assert (await adapter.stats()).entries == 0

    @transport
    async def test_M10_what_is_at_the_limit_is_kept(self, adapter: Any) -> None:
        """Key of 512 bytes, 32 metadata keys; one more byte of value or metadata is
        ValueTooLarge.
        """
        await adapter.store("x" * 512, "", metadata={f"{n}": "y" * 100 for n in range(32)})
        assert (await adapter.retrieve("x" * 512)).metadata["31"] == "y" * 100
        await expect_error(ValueTooLarge, adapter.store("k", "x" * (256 << 10), text=""))
        await expect_error(ValueTooLarge, adapter.store("k", 1, text="x" * ((256 << 10) + 1)))
        await expect_error(ValueTooLarge, adapter.store("k", 1, metadata={"a": "x" * 4096}))

    async def test_M10_quotas_of_a_namespace(self, adapter: Any) -> None:
        """Nothing is evicted; overwriting by less is allowed; another namespace has its own."""
        await adapter.store("big", "x" * (SIZE // 2 - 100), text="")
        error = await expect_error(
            QuotaExceeded, adapter.store("more", "x" * (SIZE // 2 + 100), text="")
        )
        assert error.members["config_path"] == "adapters.memory.namespace_size"
        await adapter.store("more", "x" * (SIZE // 2 + 100), text="", namespace="b")
        for number in range(ENTRIES - 1):
            await adapter.store(f"{number}", 0)
        error = await expect_error(QuotaExceeded, adapter.store("one too many", 0))
        assert error.members["config_path"] == "adapters.memory.namespace_entries"
        await adapter.store("big", 1)
        assert await adapter.delete("0")
        await adapter.store("fits now", 0)
        assert (await adapter.retrieve("big")).value == 1

    @transport
    async def test_C06_list_pages_in_order_of_key(self, adapter: Any) -> None:
        """Each once, by prefix and filter; a cursor of another query is rejected."""
        for number in range(30):
            await adapter.store(f"a/{number:02}", number, metadata={"odd": bool(number % 2)})
        await adapter.store("b", 1)
        assert await list_keys(adapter, prefix="a/", limit=7) == [
            f"a/{number:02}" for number in range(30)
        ]
        assert await list_keys(adapter, prefix="a/", filter={"odd": True}, limit=4) == [
            f"a/{n:02}" for n in range(1, 30, 2)
        ]
        assert await list_keys(adapter, prefix="a_") == []
        cursor = (await adapter.list(prefix="a/", limit=1)).next_cursor
        for call in (
            adapter.list(cursor=cursor),
            adapter.list(cursor="x"),
            adapter.list(limit=0),
            adapter.list(limit=501),
        ):
            await expect_error(ValidationError, call)

    @transport
    async def test_C07_text_round_trips(self, adapter: Any) -> None:
        """Code point by code point, in each text member."""
        entry, _ = await adapter.store(ODD, {ODD: ODD}, text=ODD, metadata={ODD: ODD})
        stored = await adapter.retrieve(ODD)
        assert stored == entry
        assert (stored.key, stored.value, stored.text, stored.metadata) == (
            ODD,
            {ODD: ODD},
            ODD,
            {ODD: ODD},
        )

    @transport
    async def test_C08_what_was_acknowledged_survives_a_kill(self, store: Any) -> None:
        """After SIGKILL of the writing process every acknowledged entry exists and is found."""
        async with store.worker("store-entries") as worker:
            acknowledged = [json.loads(await worker.stdout.readline()) for _ in range(100)]
            worker.kill()
            remainder, _ = await worker.communicate()
        acknowledged += [json.loads(line) for line in remainder.split(b"\n")[:-1]]
        adapter = await store.open()
        for line in acknowledged:
            assert (await adapter.retrieve(line["key"])).value == line["value"]
        assert await search_keys(adapter, acknowledged[-1]["value"], mode="text", limit=1) == [
            acknowledged[-1]["key"]
        ]

    @transport
    async def test_C05_a_cancelled_store_is_whole_or_not_there(self, adapter: Any) -> None:
        """Entry, vector and words."""
        tasks = [asyncio.create_task(adapter.store(f"{n}", f"word{n} whale")) for n in range(40)]
        for index, task in enumerate(tasks):
            if index % 3 == 0:
                await asyncio.sleep(0.002)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await adapter.store("last", "word whale")
        keys = set(await list_keys(adapter))
        for mode in ("text", "vector"):
            assert set(await search_keys(adapter, "whale", mode=mode, limit=100)) == keys

    async def test_C11_two_processes_on_one_store(self, store: Any, adapter: Any) -> None:
        """The entries of both exist."""
        async with (
            store.worker("store-entries", "50", "a") as first_worker,
            store.worker("store-entries", "50", "b") as second_worker,
        ):
            await asyncio.gather(first_worker.communicate(), second_worker.communicate())
        assert len(await list_keys(adapter)) == 100

    @transport
    async def test_C11_thirty_two_tasks_on_one_instance(self, adapter: Any) -> None:
        """Concurrent mixed operations leave entries and indexes consistent."""

        async def work(number: int) -> None:
            await adapter.store(f"{number}", f"whale {number}")
            await adapter.store(f"{number}", f"whale again {number}")
            assert f"{number}" in await search_keys(adapter, f"whale again {number}", limit=100)
            if number % 2:
                assert await adapter.delete(f"{number}")

        await asyncio.gather(*(work(number) for number in range(32)))
        assert sorted(await search_keys(adapter, "whale", mode="text", limit=100)) == sorted(
            await list_keys(adapter)
        )
        assert len(await list_keys(adapter)) == 16

"""M3, M6, M7, M8 and M11: filters, ranking, scores, and queries as plain words."""

from typing import Any

import pytest

from agentbox.core.slot_errors import ValidationError
from agentbox_testkit.contracts.common import expect_error, not_refused, transport
from agentbox_testkit.contracts.memory_common import list_keys, search_keys

TEXTS = {
    "wedding": "The bride and groom cut the cake after the ceremony.",
    "server": "Restart the web server after you change its configuration.",
    "recipe": "Simmer the onions in butter until they are golden.",
    "bug": "The program crashed with a segmentation fault, code QX77Z.",
    "garden": "Tulips and daffodils bloom in early spring.",
}
MODES = ("hybrid", "vector", "text")
FILTERS: tuple[tuple[dict[str, Any], set[int]], ...] = (
    ({"n": 3}, {3}),
    ({"n": {"in": [1, 2, 99]}}, {1, 2}),
    ({"n": {"ne": 0}}, set(range(1, 10))),
    ({"n": {"gt": 7}}, {8, 9}),
    ({"n": {"gte": 8, "lt": 9}}, {8}),
    ({"n": {"lte": 0}}, {0}),
    ({"even": True}, {0, 2, 4, 6, 8}),
    ({"even": 1}, set()),
    ({"name": {"gt": "n7"}}, {8, 9}),
    ({"name": "n1' OR 1=1 --"}, set()),
    ({"rare": {"exists": True}}, {5}),
    ({"rare": {"exists": False}, "n": {"lt": 6, "gt": 3}}, {4}),
    ({"rare": None}, {5}),
    ({"n": {"gt": "0"}}, set()),
    ({"absent": {"ne": 1}}, set(range(10))),
    ({'a"b': 4}, {4}),
    ({"name": {"in": ["n1", 2, True]}}, {1}),
)
"""Each with the numbers of the entries that satisfy it: of ten."""
NO_FILTERS: tuple[dict[str, Any], ...] = (
    {"a": {"like": 1}},
    {"a": {"in": []}},
    {"a": {"in": 1}},
    {"a": [1]},
    {"a": {"exists": 1}},
    {"a": {"gt": True}},
    {"a": {"gt": None}},
    {"a": {"ne": {}}},
)
PARAPHRASES = {
    "two people married": "wedding",
    "relaunch an HTTP service": "server",
    "cooking vegetables": "recipe",
    "flowers": "garden",
}
"""Each with the key of the text that it means."""
ODD_QUERIES = (
    '"',
    "'",
    "a AND",
    "OR NOT",
    "whale*",
    "NEAR(whale, 1)",
    "text:whale",
    "(whale",
    "^whale",
    "whale -- '; DROP TABLE entries",
    "& | ! <->",
    "-whale",
    "{whale}",
    "a:*b",
    "\\",
)


class SearchClauses:
    """Which entries are found, in which order, with which scores."""

    async def test_M03_every_hit_satisfies_the_filter(self, adapter: Any) -> None:
        """In each mode and in list; a boolean is not a number, a string is not a number."""
        for n in range(10):
            extra = {"rare": None} if n == 5 else {}
            meta = {"n": n, "even": n % 2 == 0, "name": f"n{n}", 'a"b': n, **extra}
            await adapter.store(f"{n}", "whale", metadata=meta)
        wrong = []
        for filter, wanted in FILTERS:
            found = {
                mode: await search_keys(adapter, "whale", mode=mode, filter=filter)
                for mode in MODES
            } | {"list": await list_keys(adapter, filter=filter)}
            wrong += [
                (filter, how, keys)
                for how, keys in found.items()
                if set(keys) != {f"{n}" for n in wanted}
            ]
        assert wrong == []

    async def test_M03_a_narrow_filter_still_fills_the_page(self, adapter: Any) -> None:
        """Of 250 entries 10 match, all of them low in the ranking."""
        for number in range(250):
            narrow = number >= 240
            await adapter.store(
                f"{number}",
                "tulips in spring" if narrow else "restart the server",
                metadata={"narrow": narrow},
            )
        for mode in ("vector", "hybrid"):
            keys = await search_keys(
                adapter, "restart the server", mode=mode, filter={"narrow": True}
            )
            assert sorted(keys) == [f"{number}" for number in range(240, 250)]

    @transport
    async def test_M03_what_is_no_filter_is_refused(self, adapter: Any) -> None:
        """In search and in list."""

        async def search(filter: dict[str, Any]) -> Any:
            return await adapter.search("x", filter=filter)

        async def list_(filter: dict[str, Any]) -> Any:
            return await adapter.list(filter=filter)

        for call in (search, list_):
            assert await not_refused(ValidationError, NO_FILTERS, call) == []

    async def test_M06_a_paraphrase_is_found_by_vector(self, adapter: Any) -> None:
        """Without a common word, before everything unrelated."""
        for name, text in TEXTS.items():
            await adapter.store(name, text)
        for mode in ("vector", "hybrid"):
            found = {
                query: (await search_keys(adapter, query, mode=mode))[0] for query in PARAPHRASES
            }
            assert found == PARAPHRASES

    async def test_M06_a_rare_word_is_found_by_text(self, adapter: Any) -> None:
        """Alone and among others; accents and case are ignored."""
        for name, text in TEXTS.items():
            await adapter.store(name, text)
        await adapter.store("accent", "caf\u00e9 au lait")
        assert await search_keys(adapter, "qx77z", mode="text") == ["bug"]
        assert (await search_keys(adapter, "the QX77Z", mode="text"))[0] == "bug"
        assert await search_keys(adapter, "CAFE", mode="text") == ["accent"]
        assert (await search_keys(adapter, "qx77z"))[0] == "bug"

    async def test_M07_scores_follow_the_formulas(self, adapter: Any) -> None:
        """Cosine, BM25 and reciprocal ranks, each within 1e-6; sorted by score, then by key."""
        for name, text in TEXTS.items():
            await adapter.store(name, text)
        await adapter.store("twin-b", "identical words")
        await adapter.store("twin-a", "identical words")
        query = "after the crash identical words"
        by_vector = await adapter.search(query, mode="vector")
        by_text = await adapter.search(query, mode="text")
        assert all(hit.score == pytest.approx(hit.cosine, abs=1e-6) for hit in by_vector)
        assert all(
            hit.score == pytest.approx(hit.bm25 / (1 + hit.bm25), abs=1e-6) for hit in by_text
        )
        assert all(-1 <= hit.cosine <= 1 for hit in by_vector)
        ranks = [
            {hit.entry.key: position for position, hit in enumerate(hits, 1)}
            for hits in (by_vector, by_text)
        ]
        for hit in await adapter.search(query):
            expected = sum(
                61 / 2 / (60 + rank[hit.entry.key]) for rank in ranks if hit.entry.key in rank
            )
            assert hit.score == pytest.approx(expected, abs=1e-6)
        for hits in (by_vector, by_text, await adapter.search(query)):
            assert list(hits) == sorted(hits, key=lambda hit: (-hit.score, hit.entry.key))
        best = (await adapter.search("identical words"))[0]
        assert (best.entry.key, best.score) == ("twin-a", pytest.approx(1.0))

    async def test_M07_what_other_namespaces_hold_moves_no_score(self, adapter: Any) -> None:
        """Nor the order: search in one namespace reveals neither words nor the size of another."""
        await adapter.store("a", "alpha words")
        await adapter.store("b", "bravo words")
        await adapter.store("c", "something else")
        before = {mode: await adapter.search("alpha bravo", mode=mode) for mode in MODES}
        for number in range(5):
            await adapter.store(f"{number}", "alpha and many more words", namespace="other")
        for mode in MODES:
            assert await adapter.search("alpha bravo", mode=mode) == before[mode]

    async def test_M07_a_long_query_finds_by_each_of_its_words(self, adapter: Any) -> None:
        """An entry with many rare words first, then one with only the common word."""
        rare = " ".join(f"rare{number}" for number in range(80))
        await adapter.store("rare", rare)
        for number in range(3):
            await adapter.store(f"{number}", "common")
        assert await search_keys(adapter, f"common {rare}", mode="text") == ["rare", "0", "1", "2"]

    @transport
    async def test_M07_limits_and_the_empty_store(self, adapter: Any) -> None:
        """1 to 100 hits, none from an empty store, none for an empty query by text."""
        for mode in MODES:
            assert await adapter.search("x", mode=mode) == ()
        for number in range(120):
            await adapter.store(f"{number}", "whale")
        for mode in MODES:
            assert len(await adapter.search("whale", mode=mode, limit=1)) == 1
            assert len(await adapter.search("whale", mode=mode, limit=100)) == 100
        assert await adapter.search("", mode="text") == ()
        for arguments in (
            {"limit": 0},
            {"limit": 101},
            {"mode": "fuzzy"},
            {"namespaces": ()},
            {"namespaces": ("A",)},
            {"min_cosine": 2},
            {"min_cosine": True},
        ):
            await expect_error(ValidationError, adapter.search("x", **arguments))

    async def test_M07_a_floor_of_cosine_holds(self, adapter: Any) -> None:
        """No hit is below it."""
        for name, text in TEXTS.items():
            await adapter.store(name, text)
        for mode in MODES:
            hits = await adapter.search("the server configuration", mode=mode, min_cosine=0.5)
            assert [hit.entry.key for hit in hits] == ["server"]

    async def test_M07_an_entry_without_words_is_no_hit(self, adapter: Any) -> None:
        """A number has no text, so it is not ranked."""
        await adapter.store("number", 7)
        await adapter.store("words", "seven")
        for mode in MODES:
            assert await search_keys(adapter, "seven", mode=mode) == ["words"]

    async def test_M08_anagrams_are_not_alike(self, adapter: Any) -> None:
        """The letters are equal, the words are not."""
        await adapter.store("a", "restart the server")
        (hit,) = await adapter.search("reverse the tarstr", mode="vector")
        assert hit.cosine < 0.9

    async def test_M11_a_query_is_only_words(self, adapter: Any) -> None:
        """No operator reaches the query language: no error, and the plain word is found."""
        await adapter.store("k", "a whale; and near text")
        for query in ODD_QUERIES:
            for mode in MODES:
                keys = await search_keys(adapter, query, mode=mode)
                assert keys in ([], ["k"]), (query, mode)
                if "whale" in query:
                    assert keys == ["k"], (query, mode)
        assert await list_keys(adapter) == ["k"]

"""Memory over HTTP: entries, search, listing."""

import json
import uuid

import pytest

from agentbox.client import ApiError, BoxClient


@pytest.fixture
def ns() -> str:
    """A namespace of this test's own."""
    return f"t-{uuid.uuid4().hex[:8]}"


def put(client: BoxClient, ns: str, key: str, value: object, **more: object) -> dict[str, object]:
    found: dict[str, object] = client.call(
        "store_memory", {"ns": ns, "key": key}, body={"value": value, **more}
    )
    return found


def test_an_entry_lives_and_dies(client: BoxClient, ns: str) -> None:
    """A key may contain slashes and anything else; the second store replaces and keeps
    `created_at`."""
    key = "a/b c?#\u00e9"
    first = put(client, ns, key, {"x": [1, None]}, metadata={"kind": "note"})
    second = put(client, ns, key, "text")
    found = client.call("retrieve_memory", {"ns": ns, "key": key})
    assert (found["key"], found["value"], found["text"], found["metadata"]) == (
        key,
        "text",
        "text",
        {},
    )
    assert second["created_at"] == first["created_at"]
    client.call("delete_memory", {"ns": ns, "key": key})
    for name in ("retrieve_memory", "delete_memory"):
        with pytest.raises(ApiError) as gone:
            client.call(name, {"ns": ns, "key": key})
        assert gone.value.status == 404


def test_search_finds_by_words_and_by_meaning(client: BoxClient, ns: str) -> None:
    """A rare word by text, a paraphrase by vector; the filter applies; results have scores."""
    put(client, ns, "food", "a recipe for baking sourdough bread", metadata={"n": 1})
    put(client, ns, "ship", "the frigate zumwalt left the harbour", metadata={"n": 2})
    hits = client.call(
        "search_memory", body={"query": "zumwalt", "namespaces": [ns], "mode": "text"}
    )["hits"]
    assert [hit["entry"]["key"] for hit in hits] == ["ship"]
    meaning = {"query": "how to make a loaf", "namespaces": [ns], "mode": "vector", "limit": 1}
    assert client.call("search_memory", body=meaning)["hits"][0]["entry"]["key"] == "food"
    filtered = client.call(
        "search_memory", body={"query": "bread", "namespaces": [ns], "filter": {"n": {"gt": 1}}}
    )["hits"]
    assert [hit["entry"]["key"] for hit in filtered] == ["ship"]


def test_listing_pages_by_prefix_and_filter(client: BoxClient, ns: str) -> None:
    """Each entry once, in order."""
    for number in range(5):
        put(client, ns, f"k{number}", number, metadata={"odd": number % 2})
    put(client, ns, "other", 9)
    first = client.call("list_memory", {"ns": ns}, query={"prefix": "k", "limit": 3})
    rest = client.call(
        "list_memory", {"ns": ns}, query={"prefix": "k", "limit": 3, "cursor": first["next_cursor"]}
    )
    assert [row["key"] for row in (*first["items"], *rest["items"])] == [f"k{n}" for n in range(5)]
    odd = client.call("list_memory", {"ns": ns}, query={"filter": json.dumps({"odd": 1})})
    assert [row["key"] for row in odd["items"]] == ["k1", "k3"]
    assert client.call("memory_stats", query={"namespace": ns})["entries"] == 6


@pytest.mark.parametrize(
    ("name", "key", "body", "query"),
    [
        ("store_memory", "k", {}, None),
        ("store_memory", "k", {"value": 1, "colour": 2}, None),
        ("store_memory", "k", {"value": 1, "ttl_s": 0}, None),
        ("store_memory", "k", {"value": 1, "metadata": {"a": []}}, None),
        ("list_memory", "", None, {"filter": "["}),
        ("list_memory", "", None, {"filter": "[]"}),
        ("list_memory", "", None, {"limit": "501"}),
        ("search_memory", "", {"query": "x", "mode": "magic"}, None),
        ("search_memory", "", {"query": "x", "namespaces": []}, None),
    ],
)
def test_what_does_not_fit_is_refused(
    client: BoxClient, ns: str, name: str, key: str, body: object, query: object
) -> None:
    """400 with the pointer."""
    with pytest.raises(ApiError) as caught:
        client.call(name, {"ns": ns, "key": key}, body=body, query=query)  # type: ignore[arg-type]
    assert (caught.value.status, caught.value.code) == (400, "validation")
    assert caught.value.problem["errors"]

"""Private data in bodies of pods is masked on its way."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest
from helpers import pods_of
from support import tables
from support.api_box import ApiBox


@pytest.fixture
def guarded(own_box: Callable[..., ApiBox]) -> Iterator[httpx.Client]:
    """A box whose policy for pods is strict, as in a default manifest."""
    with pods_of(
        own_box(orchestrator=False, privacy=tables.privacy(policy={"pods": "strict"}))
    ) as client:
        yield client


def test_private_data_in_a_large_text_is_masked_on_its_way(guarded: httpx.Client) -> None:
    """At any position, split between any chunks; binary bodies pass; a changed body gets no tag."""
    key = "AKIA" + "ABCDEFGH12345678"
    text = ("word " * 20_000 + key + " ") * 12
    pieces = (text.encode()[at : at + 65_521] for at in range(0, len(text), 65_521))
    made = guarded.put("a", content=pieces, headers={"Content-Type": "text/plain"})
    assert "etag" not in made.headers
    assert guarded.get("a").text == text.replace(key, "[SECRET]")
    small = guarded.put("b", content=f"see {key}".encode())
    assert ("etag" in small.headers, guarded.get("b").text) == (False, "see [SECRET]")
    raw = b"\0" + text.encode()
    assert "etag" in guarded.put("c", content=raw).headers
    assert guarded.get("c").content == raw


def test_private_data_in_a_patch_is_masked(guarded: httpx.Client) -> None:
    """Its values are texts too."""
    key = "AKIA" + "ABCDEFGH12345678"
    guarded.put("a", content=b"{}", headers={"Content-Type": "application/json"})
    patch = json.dumps([{"op": "add", "path": "/x", "value": {"y": [f"see {key}"]}}]).encode()
    done = guarded.patch(
        "a", content=patch, headers={"Content-Type": "application/json-patch+json"}
    )
    assert done.status_code == 204
    assert guarded.get("a").json() == {"x": {"y": ["see [SECRET]"]}}

"""Text, JSON and cursors that every slot checks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.adapters.runtime.input_checks import decode_cursor, encode_cursor, json_text
from agentbox.core.slot_errors import ValidationError, ValueTooLarge

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


@given(JSON)
def test_json_reads_back_equal(value):
    """Whatever it is."""
    assert json.loads(json_text(value, "/x", max_bytes=1 << 20)) == value


@pytest.mark.parametrize(
    "value", [float("nan"), float("-inf"), {1: 2}, {"a"}, b"x", "a\0", ["\udc00"], {"a\0": 1}]
)
def test_what_json_cannot_carry_is_refused(value):
    """With its pointer."""
    with pytest.raises(ValidationError):
        json_text(value, "/x", max_bytes=1 << 20)


def test_deep_nesting_is_refused():
    """Before any recursion limit."""
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValidationError, match="nested"):
        json_text(value, "/x", max_bytes=1 << 20)


def test_size_counts_bytes():
    """Not characters."""
    assert json_text("\u00e9" * 4, "/x", max_bytes=10)
    with pytest.raises(ValueTooLarge):
        json_text("\u00e9" * 5, "/x", max_bytes=10)


@given(st.lists(st.integers() | TEXT, min_size=1, max_size=4))
def test_a_cursor_gives_its_key_back(key):
    """To its own listing alone."""
    cursor = encode_cursor(["list", {"a": 1}], key)
    assert decode_cursor(cursor, ["list", {"a": 1}], len(key)) == key
    for listing, length in (
        (["list", {"a": 2}], len(key)),
        (["ready"], len(key)),
        (["list", {"a": 1}], len(key) + 1),
    ):
        with pytest.raises(ValidationError):
            decode_cursor(cursor, listing, length)


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "e30", "W10", "\u00e9"])
def test_nonsense_is_a_foreign_cursor(cursor):
    """Never another error."""
    with pytest.raises(ValidationError):
        decode_cursor(cursor, ["list"], 1)

"""yaml: what is written is what a YAML reader gets."""

import math
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from agentbox.plan.render.yaml import Quoted, dump

_SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.integers(-(10**9), 10**9),
    st.floats(0.25, 1e6),
    st.booleans(),
    st.none(),
    st.sampled_from(
        [
            "yes",
            "No",
            "on",
            "null",
            "~",
            "1e3",
            "0x10",
            "1_000",
            "12:30",
            "2026-01-01",
            "- a",
            "a: b",
            "#x",
        ]
    ),
)
_KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(_KEYS, _DATA, min_size=1, max_size=3))
def test_a_reader_gets_the_data_back(data: dict[str, Any]) -> None:
    """Types included: no text is read as a number, a date or a boolean (YAML 1.1, the stricter test)."""
    assert pyyaml.safe_load(dump(data)) == data


def test_style_is_block_and_keys_keep_their_order() -> None:
    """The style that dclint demands, two spaces a level."""
    data = {"b": {"x": [1, {"k": "v", "l": []}]}, "a": Quoted("word"), "c": {}}
    assert dump(data) == "b:\n  x:\n    - 1\n    - k: v\n      l: []\na: 'word'\nc: {}\n"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    """Nothing in a plan may be one."""
    with pytest.raises(ValueError):
        dump({"a": value})


def test_anything_but_plain_data_is_a_bug() -> None:
    """A forgotten conversion must not be written as its repr."""
    with pytest.raises(TypeError, match="bytes"):
        dump({"a": b"x"})

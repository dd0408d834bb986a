"""The quick check of a manifest and jsonschema agree, whatever is written."""

import tomllib
from typing import Any

import pytest
from case import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fuzz import FULL, PLACES, VALUES, changed

from agentbox.manifest.schema.generator import schema_at
from agentbox.manifest.schema.quick_check import passes_quick_check
from agentbox.manifest.schema.validator import check


def refused(document: dict[str, Any]) -> bool:
    """The verdict of jsonschema and of the pairs of keys."""
    return bool(check(document, {}).findings)


def near(path: tuple[str, ...]) -> list[Any]:
    """Values at the edge of what the schema accepts at a path."""
    schema = schema_at(".".join(path)) or {}
    at: Any = FULL
    for name in path:
        at = at[name]
    numbers = [
        schema[word] + step
        for word in ("minimum", "maximum")
        if word in schema
        for step in (-1, 0, 1)
    ]
    words = [*schema.get("enum", ()), f"{at}\n", f"{at}x", str(at), ""]
    lists = [[*at, *at], at[:1], [*at, 1]] if isinstance(at, list) else [[at]]
    tables = (
        [{**at, "zzz": 1}, {}, *({"A b": entry} for entry in at.values())]
        if isinstance(at, dict)
        else []
    )
    return [*numbers, *map(float, numbers), *words, *lists, *tables, [], 2, float("inf"), True]


def test_a_look_at_two_manifests() -> None:
    """A valid manifest needs no validator; one with an unknown key does."""
    assert not passes_quick_check({"meta": {"schema_version": 1}, "zebra": 1})
    assert passes_quick_check({"meta": {"schema_version": 1}})


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_every_case_of_a_rule(case: Any) -> None:
    """Those of E016 are refused by both."""
    try:
        document = tomllib.loads(case.manifest)
    except ValueError:
        assert case.code == "E000"
        return
    assert passes_quick_check(document) is not refused(document)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_every_key_at_its_edges(path: tuple[str, ...]) -> None:
    """Bounds, near misses of words and patterns, repeats, wrong types, and the key removed."""
    for value in (..., *near(path)):
        document = changed(FULL, path, value)
        assert passes_quick_check(document) is not refused(document), value


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.one_of(st.just(...), VALUES)), max_size=4))
def test_a_full_manifest_with_a_few_things_spoilt(
    changes: list[tuple[tuple[str, ...], Any]],
) -> None:
    """Any value at any key, removed keys."""
    document = FULL
    for path, value in changes:
        document = changed(document, path, value)
    assert passes_quick_check(document) is not refused(document)

"""Random manifests: whatever they contain, every run ends with findings at positions that exist,
and twice with the same result."""

import random
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
from catalogue import FEATURES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbox.manifest.load import parse
from agentbox.manifest.rules.engine import ValidationReport, run_rules

FULL = tomllib.loads((Path(__file__).parent / "full.toml").read_text())
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=12),
    st.sampled_from(
        [
            "off",
            "external-http",
            "openai",
            "$EGRESS",
            "*",
            "/**",
            "10.0.0.0/8",
            "1GiB",
            "builder",
            "",
            "a/../b",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("abz-_", max_size=3), inner, max_size=3),
    ),
    max_leaves=5,
)
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def places(table: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key of a document, tables too."""
    found = []
    for name, value in table.items():
        found.append((*path, name))
        if isinstance(value, dict):
            found += places(value, (*path, name))
    return found


PLACES = places(FULL)


def changed(document: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at a path; without it for `...`."""
    copy = dict(document)
    if len(path) > 1:
        copy[path[0]] = (
            changed(copy[path[0]], path[1:], value)
            if isinstance(copy.get(path[0]), dict)
            else copy.get(path[0], 0)
        )
    elif value is ...:
        copy.pop(path[0], None)
    else:
        copy[path[0]] = value
    return copy


def judged(data: bytes) -> ValidationReport:
    """The report, after the checks that apply to every report."""
    report = run_rules(
        parse(data, "x"), features=FEATURES, environment={}, systems=["aarch64-linux"]
    )
    lines = data.decode().split("\n")
    for found in report.findings:
        assert 1 <= found.line <= len(lines)
        assert 1 <= found.column <= len(lines[found.line - 1]) + 1
        assert found.message
        assert found.remedy
    assert list(report.findings) == sorted(report.findings, key=lambda found: found.order)
    assert report == run_rules(
        parse(data, "x"), features=FEATURES, environment={}, systems=["aarch64-linux"]
    )
    return report


@SLOW
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.one_of(st.just(...), VALUES)), min_size=1, max_size=8
    )
)
def test_a_full_manifest_with_a_few_things_spoilt(
    changes: list[tuple[tuple[str, ...], Any]],
) -> None:
    """Values of any type at any key, removed keys: never an exception."""
    document = FULL
    for path, value in changes:
        document = changed(document, path, value)
    judged(tomli_w.dumps(document).encode())


@SLOW
@given(
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(FULL)), st.text('abz.- "é', max_size=4)),
        VALUES,
        max_size=6,
    )
)
def test_a_document_of_anything(document: dict[str, Any]) -> None:
    """Tables of the manifest contain scalars, lists contain tables, names contain dots and quotes."""
    judged(tomli_w.dumps(document).encode())


@SLOW
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    """What is no TOML is one finding E000; what is, is judged."""
    report = run_rules(parse(data, "x"), features=FEATURES)
    assert report == run_rules(parse(data, "x"), features=FEATURES)
    if any(found.code == "E000" for found in report.findings):
        assert len(report.findings) == 1


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_tables_does_not_matter(chance: random.Random) -> None:
    """The same keys in another order: the same findings at the same keys."""

    def shuffled(table: dict[str, Any]) -> dict[str, Any]:
        names = list(table)
        chance.shuffle(names)
        return {
            name: shuffled(table[name]) if isinstance(table[name], dict) else table[name]
            for name in names
        }

    assert _codes_at_keys(tomli_w.dumps(shuffled(FULL))) == _codes_at_keys(tomli_w.dumps(FULL))


@cache
def _codes_at_keys(text: str) -> frozenset[tuple[str, str]]:
    """Without I602, which points at the first key of a table."""
    findings = judged(text.encode()).findings
    return frozenset((found.code, found.key) for found in findings if found.code != "I602")

"""Positions of keys: the same key paths as tomllib finds, and the right places."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.declarations.key_path import KeyPath, to_text
from agentbox.manifest.positions import Position, key_positions

_AVOID = (".venv", ".git", "node_modules")
FILES = sorted(
    path
    for path in CHECKOUT.rglob("*.toml")
    if not any(part in _AVOID for part in path.relative_to(CHECKOUT).parts)
)


def key_paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key of a parsed document; positions in lists are steps and no keys."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*path, name)
            yield from key_paths(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from key_paths(item, (*path, index))


def parses(path: Path) -> bool:
    try:
        tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    "path", [p for p in FILES if parses(p)], ids=lambda p: str(p.relative_to(CHECKOUT))
)
def test_every_document_of_the_repository(path: Path) -> None:
    """The key paths equal those of tomllib, and each position is that of the key's last part."""
    text = path.read_text()
    found = key_positions(text)
    assert set(found) == set(key_paths(tomllib.loads(text)))
    lines = text.split("\n")
    for key, place in found.items():
        written = lines[place.line - 1][place.column - 1 :]
        assert written.lstrip("\"'").startswith(str(key[-1])), key


def test_there_are_documents() -> None:
    """The list above is not empty."""
    assert len(FILES) > 100


_ATOMS = st.one_of(
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.dates(),
    st.datetimes(),
)
_NAMES = st.one_of(st.from_regex(r"[a-z_-]{1,6}", fullmatch=True), st.text(max_size=6))
_VALUES = st.recursive(
    _ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=6), st.booleans())
def test_generated_documents(document: dict[str, Any], multiline: bool) -> None:
    """Whatever a writer makes of generated data, key paths equal those of tomllib."""
    text = tomli_w.dumps(document, multiline_strings=multiline).replace("\r\n", "\n")
    assert set(key_positions(text)) == set(key_paths(tomllib.loads(text)))


HARD = '''
"a" . b.'c d' = """x = 1 # no key \\""" ""\"" # comment [z]
t = \'\'\'
[not.a.table]
k = 1\'\'\'
list = [ # [q]
  { x = 1, y.z = "}" }, [[{ w = "]" }]], "a]b", 'c#d', 1979-05-27 07:32:00,
]
[[arr]]
n = 1
[arr.sub]
m = 2
[[arr.deep]]
o = 1
[[arr]]
[[arr.deep]]
p = 3
[ spaced . "quoted.key" ]
empty = {}
"\\u0041" = 1
[a.other]
'''


def test_hard_syntax() -> None:
    """Multi-line strings, comments, dotted and quoted keys, arrays of tables and inline tables are
    distinguished."""
    found = key_positions(HARD)
    assert set(found) == set(key_paths(tomllib.loads(HARD)))
    assert found["a", "b", "c d"] == Position(2, 9)
    assert found["arr", 1, "deep", 0, "p"] == Position(17, 1)
    assert found["spaced", "quoted.key"] == Position(18, 12)
    assert found["spaced", "quoted.key", "A"] == Position(20, 1)


def test_a_place_is_the_first_one() -> None:
    """A table that is named again by a sub-table keeps its first position."""
    assert key_positions("[a.b]\nx = 1\n[a.c]\n")[("a",)] == Position(1, 2)


@pytest.mark.parametrize(
    ("path", "text"),
    [(("a", "b"), "a.b"), (("a", 0, "b"), "a[0].b"), (("a b", ""), '"a b".""'), (("ü",), '"ü"')],
)
def test_text_form(path: KeyPath, text: str) -> None:
    """Bare names are bare, others quoted; positions in lists in brackets."""
    assert to_text(path) == text

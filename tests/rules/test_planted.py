"""One known mistake, planted at a known position of a valid manifest in any style, is found exactly
there."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from handwriting import Hand, Place, Raw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fuzz import FULL

from agentbox.host.cli.main import cli
from agentbox.manifest.declarations.key_path import KeyPath, to_text
from agentbox.manifest.findings import Finding
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.load import parse
from agentbox.manifest.schema.generator import schema_at

OFTEN = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEEP = {"reason", "mode", "patterns", "source", "target", "size"}  # required within what is written
WRONG = {"boolean": 7, "integer": "seven", "number": "seven", "string": False, "array": 7}


def schema_of(path: KeyPath) -> dict[str, Any]:
    """The schema at a path, through the items of lists."""
    schema = schema_at(
        ".".join(str(name) for name in path if not isinstance(name, int)).replace("..", ".")
    )
    assert schema is not None
    return schema


def leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key that is not a table; of tables in lists only where a schema path leads to them."""
    for name, item in value.items():
        if isinstance(item, dict):
            yield from leaves(item, (*path, name))
        elif not (isinstance(item, list) and any(isinstance(row, dict) for row in item)):
            yield (*path, name)


def tables(value: dict[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every table whose keys the schema closes, including the document itself."""
    if not path or schema_of(path).get("additionalProperties") is False:
        yield path
    for name, item in value.items():
        if isinstance(item, dict):
            yield from tables(item, (*path, name))


def some(
    chance: random.Random, value: dict[str, Any], share: float, path: str = ""
) -> dict[str, Any]:
    """A valid manifest with a part of the full one, in another order."""
    kept = {}
    for name in chance.sample(list(value), len(value)):
        at, item = f"{path}.{name}".lstrip("."), value[name]
        if isinstance(item, dict):
            kept[name] = some(chance, item, share, at)
        elif (
            name in KEEP
            or (spec := keys().get(generic_path(at))) is None
            or spec.required
            or chance.random() < share
        ):
            kept[name] = item
    return kept


def put(document: dict[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """A copy with that value at that path."""
    name, *rest = path
    inner = put(document[str(name)], tuple(rest), value) if rest else value
    return {**document, str(name): inner}


def judged(data: bytes) -> tuple[str, list[str]]:
    """The path of a file with those bytes, and what the command prints of it."""
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()) as said:
        path = Path(folder) / "box.toml"
        path.write_bytes(data)
        assert cli.main(["config", "validate", str(path)], standalone_mode=False) == 1
    return str(path), said.getvalue().splitlines()


def refusal(data: bytes) -> Finding:
    """The only finding of the file or of the schema."""
    (finding,) = parse(data, "x").findings
    return finding


def check(data: bytes, place: Place, code: str, kind: str, key: str) -> None:
    """File, line, column, code and key path, as the command prints them; nothing else refused."""
    finding = refusal(data)
    assert (finding.code, finding.kind, finding.key) == (code, kind, key)
    assert (finding.line, finding.column) == place
    path, said = judged(data)
    mine = f"{path}:{place[0]}:{place[1]}: error {code}{f' {key}' if key else ''}: "
    assert sum(line.startswith(mine) for line in said) == 1
    assert sum(f" {code} " in line or f" {code}:" in line for line in said) == 1


def hand(seed: int) -> tuple[random.Random, dict[str, Any], Hand]:
    """Everything random about one example."""
    chance = random.Random(seed)
    return chance, some(chance, FULL, chance.random()), Hand(chance)


SEEDS = st.integers(0, 2**32)


@OFTEN
@given(SEEDS)
def test_the_handwriting_says_the_same(seed: int) -> None:
    """The reader has nothing to refuse, reads what was meant, and finds each key where the hand put it."""
    _, document, writer = hand(seed)
    manifest = parse(writer.document(document), "x")
    assert manifest.findings == ()
    assert manifest.written == document
    assert {to_text(path): place for path, place in writer.keys.items()}.items() <= dict(
        manifest.positions
    ).items()


@OFTEN
@given(SEEDS)
def test_a_wrong_type(seed: int) -> None:
    """Any key, with a value of a type that it does not accept."""
    chance, document, writer = hand(seed)
    path = chance.choice(list(leaves(document)))
    schema = schema_of(path)
    value = WRONG[schema["type"]]
    data = writer.document(put(document, path, value))
    check(data, writer.keys[path], "E016", "wrong-type", to_text(path))


@OFTEN
@given(SEEDS)
def test_an_unknown_key(seed: int) -> None:
    """Any closed table, with a key, or a table, that it does not have."""
    chance, document, writer = hand(seed)
    path = (
        *chance.choice(list(tables(document))),
        chance.choice(["zebra", "memry", "é x", "use_"]),
    )
    data = writer.document(put(document, path, chance.choice([1, "x", {"a": 1}, [1]])))
    check(data, writer.keys[path], "E016", "unknown-key", to_text(path))


@OFTEN
@given(SEEDS)
def test_a_bad_unit(seed: int) -> None:
    """Any size and any time, in a unit that is not the manifest's."""
    chance, document, writer = hand(seed)
    units: list[tuple[KeyPath, str]] = []
    for path in leaves(FULL):
        if schema_of(path).get("title") == "size":
            units.append((path, "512MB"))
        elif str(path[-1]).endswith("_seconds"):
            units.append((path, "30s"))
    path, value = chance.choice(units)
    data = writer.document(put(document, path, value))
    check(data, writer.keys[path], "E016", "bad-unit", to_text(path))


MISTAKES: list[tuple[Raw, Callable[[Hand, KeyPath], Place]]] = [
    (Raw("@"), lambda writer, path: writer.values[path]),
    (Raw("1", ":"), lambda writer, path: writer.signs[path]),
    (Raw('"an\x01end"'), lambda writer, path: (writer.values[path][0], writer.values[path][1] + 3)),
    (Raw("1x"), lambda writer, path: (writer.values[path][0], writer.values[path][1] + 1)),
]
"""A value that is none, a colon for the sign, a control character in a string, two words."""


@OFTEN
@given(SEEDS, st.sampled_from(MISTAKES))
def test_no_toml(seed: int, mistake: tuple[Raw, Callable[[Hand, KeyPath], Place]]) -> None:
    """The reader's own position, and no other finding."""
    chance, document, writer = hand(seed)
    path = chance.choice(list(leaves(document)))
    raw, where = mistake
    data = writer.document(put(document, path, raw))
    check(data, where(writer, path), "E000", "syntax", "")


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_the_same_bytes_are_answered_with_the_same_bytes(form: str, tmp_path: Path) -> None:
    """Another process, another hash seed: the same findings in the same order."""
    chance, document, writer = hand(7)
    for path in chance.sample(list(leaves(document)), 12):
        document = put(document, path, WRONG[schema_of(path)["type"]])
    manifest = tmp_path / "box.toml"
    manifest.write_bytes(writer.document(document))
    argv = [sys.executable, "-m", "agentbox", "config", "validate", str(manifest), "--format", form]
    answers = {
        subprocess.run(
            argv, capture_output=True, check=False, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "4242")
    }
    (answer,) = answers
    assert answer.count(b"E016") >= 12

"""What happens to a manifest that has every key, when one of them is spoilt."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import full_manifest
import pytest
from case import Case, cases
from catalogue import FEATURES

from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.load import parse
from agentbox.manifest.rules.discovery import discover
from agentbox.manifest.rules.engine import run_rules
from agentbox.manifest.schema.generator import schema_at

FULL = (Path(__file__).parent / "full.toml").read_text()
LINES = FULL.split("\n")
VALUES = {
    "boolean": "true",
    "integer": "12345",
    "float": "1.25",
    "string": '"text here"',
    "array": "[[1]]",
    "table": "{ zzz = 1 }",
    "date": "1979-05-27",
}
FITS = {
    "boolean": {"boolean"},
    "integer": {"integer"},
    "number": {"integer", "float"},
    "string": {"string"},
}


def written() -> Iterator[tuple[int, str, str]]:
    """Line number from 1, key path, name, of every key of the full manifest."""
    table = ""
    for number, line in enumerate(LINES, 1):
        if header := re.fullmatch(r"\[(.+)\]", line):
            table = header[1]
        elif pair := re.match(r"([a-z0-9_]+) = ", line):
            yield number, f"{table}.{pair[1]}", pair[1]


def with_line(number: int, text: str) -> bytes:
    return "\n".join([*LINES[: number - 1], text, *LINES[number:]]).encode()


def found(data: bytes) -> set[tuple[str, int]]:
    """Code and line of all findings."""
    tomllib.loads(data.decode())
    return {
        (finding.code, finding.line)
        for finding in run_rules(parse(data, "x"), features=FEATURES).findings
    }


WRITTEN = list(written())


def test_the_full_manifest_is_fresh() -> None:
    """It equals what the tables declare."""
    assert full_manifest.text() == FULL, f"stale: run `{full_manifest.COMMAND}`"


def test_the_full_manifest_has_every_key() -> None:
    """Of each `_env` and `_file` pair one, and the schema accepts all."""
    have = {generic_path(path) for _, path, _ in WRITTEN}
    for path in set(keys()) - have:
        partner = (
            path.replace("_env", "_file")
            if path.endswith("_env")
            else path.replace("_file", "_env")
        )
        assert partner in have, path
    assert parse(FULL.encode(), "x").findings == ()


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("number", "path", "name"), WRITTEN, ids=[path for _, path, _ in WRITTEN])
def test_a_wrong_type_is_found_at_its_line(number: int, path: str, name: str) -> None:
    """Every type that the key does not accept."""
    schema = schema_at(path)
    assert schema is not None
    fits = FITS.get(schema["type"], {schema["type"]}) - {"array"}
    for kind, value in VALUES.items():
        if kind not in fits:
            assert ("E016", number) in found(with_line(number, f"{name} = {value}")), value


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("number", "path", "name"), WRITTEN, ids=[path for _, path, _ in WRITTEN])
def test_a_misspelt_key_is_found_at_its_line(number: int, path: str, name: str) -> None:
    """One letter more; the right name is among the suggestions."""
    line = LINES[number - 1].replace(name, f"{name}z", 1)
    report = run_rules(parse(with_line(number, line), "x"), features=FEATURES)
    mine = [
        finding for finding in report.findings if finding.code == "E016" and finding.line == number
    ]
    assert [finding.kind for finding in mine] == ["unknown-key"]
    assert f"`{name}`" in mine[0].remedy


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("number", "path", "name"), WRITTEN, ids=[path for _, path, _ in WRITTEN])
def test_a_deleted_key_is_never_an_exception(number: int, path: str, name: str) -> None:
    """Absent keys have their default; rules continue."""
    assert isinstance(found(with_line(number, "")), set)


UNMOVED = [case for case in cases() if case.trips and "**" not in discover()[case.code].reads]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", UNMOVED, ids=lambda case: case.id)
def test_a_wrong_value_elsewhere_hides_nothing(case: Case) -> None:
    """A wrongly typed key that the rule does not read does not change its findings."""
    spoilt = run_rules(parse(_spoilt(case.manifest), "x"), **case.arguments).findings
    assert "resources.stop_seconds" not in discover()[case.code].reads
    assert "resources.stop_seconds" in [found.key for found in spoilt if found.code == "E016"]
    own = [found.key for found in case.report().findings if found.code == case.code]
    assert [found.key for found in spoilt if found.code == case.code] == own


def _spoilt(text: str) -> bytes:
    wrong = 'stop_seconds = "x"'
    if "[resources]" in text:
        return text.replace("[resources]", f"[resources]\n{wrong}", 1).encode()
    return f"{text}\n[resources]\n{wrong}\n".encode()

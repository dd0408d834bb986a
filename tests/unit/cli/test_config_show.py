"""`agentbox config show`: all keys, and with `--resolved` their source and effects."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.main import cli
from agentbox.host.cli.resolved_keys import ResolvedKey, resolve_keys
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.keys import effective_values
from agentbox.manifest.load import load, parse

SHIPPED = CHECKOUT / "agentbox.toml"
TEXT = """[meta]
schema_version = 1
[adapters]
pods.use = "off"
[limits]
pids = 64
[mesh]
token_file = "/run/t"
[agents.a]
command = ["bash", "-c", "a\\tb\\u007f#"]
limits.fds = 99
[providers]
"""


@pytest.fixture(scope="module")
def resolved() -> Mapping[str, ResolvedKey]:
    """Keys of a manifest with maps and awkward strings; seconds, since each is tried with another
    value."""
    return resolve_keys(parse(TEXT.encode(), "x"), load_features())


def shown(path: Path, *words: str) -> None:
    assert cli.main(["--manifest", str(path), *words], standalone_mode=False) == 0


@pytest.mark.parametrize("words", [("config", "show"), ("config", "show", "--resolved")])
def test_it_prints_a_manifest_that_means_the_same(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every key, valid TOML, equal effective values; also of one with maps and awkward strings.
    With `--resolved`, features, listeners and kinds of slots stand at the end, as comments."""
    other = tmp_path / "agentbox.toml"
    other.write_text(TEXT)
    for path in (SHIPPED, other):
        shown(path, *words)
        text = capsys.readouterr().out
        again = parse(text.encode(), "shown")
        assert again.findings == ()
        assert effective_values(again) == effective_values(load(path))
        assert ("# features: build, core" in text) == ("--resolved" in words)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The tables, and of every key the same six things."""
    shown(SHIPPED, "--json", "config", "show", "--resolved")
    found = json.loads(capsys.readouterr().out)
    assert set(found["resolved"]["keys"]) == set(effective_values(load(SHIPPED)))
    assert set(found["resolved"]["keys"]["api.port"]) == {
        "value",
        "source",
        "apply",
        "unread",
        "rules",
        "files",
    }
    assert found["meta"] == tomllib.loads(SHIPPED.read_text())["meta"] | {"dev": False}


def test_sources(resolved: Mapping[str, ResolvedKey]) -> None:
    """A line, the default, the key it is derived from, or the key that decides it."""
    limits = {path: row.source for path, row in resolved.items() if ".limits" in path}
    assert {path: source for path, source in limits.items() if "default" not in source} == {
        "agents.a.limits.pids": "limits.pids, line 6",
        "agents.a.limits.fds": "line 11",
    }
    assert resolved["agents.a.limits.memory"].source == "limits.memory, default"
    assert resolved["limits.pids"].source == "line 6"
    assert resolved["limits.fds"].source == "default"
    assert resolved["adapters.pods.required"].source == "adapters.pods.use, line 4"
    assert resolved["mesh.token_env"].source == "mesh.token_file, line 8"


def test_what_a_key_touches(resolved: Mapping[str, ResolvedKey]) -> None:
    """Files by trying another value; nothing outside of the box for live and boot keys; rules by name."""
    assert {"docker-compose.yml", "kubernetes.yaml", "podman-run.txt"} <= set(
        resolved["resources.memory"].files
    )
    assert "kubernetes.yaml" not in resolved["resources.pids"].files
    assert resolved["limits.memory"].files == resolved["adapters.beads.use"].files == ()
    assert "E102" in resolved["resources.memory"].rules
    assert str(resolved["api.port"]).startswith("default; rebuild: image, docker-compose.yml")


def test_what_nothing_reads(resolved: Mapping[str, ResolvedKey]) -> None:
    """By its condition, since nothing reads it, or because it is not supported yet."""
    assert (
        resolved["adapters.memory.pool_size"].unread
        == 'only while `adapters.memory.use` is "external-pg"'
    )
    assert resolved["adapters.memory.endpoint"].unread == "no choice of `adapters.memory.use` does"
    assert resolved["backup.keep"].unread == ""
    assert resolved["limits.memory"].unread == ""

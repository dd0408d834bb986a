"""`agentbox config show`: all keys, and with `--resolved` their source and effects."""

import json
import tomllib
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.main import cli
from agentbox.host.cli.resolved_keys import resolve_keys
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


def shown(path: Path, *words: str) -> None:
    assert cli.main(["--manifest", str(path), *words], standalone_mode=False) == 0


@pytest.mark.parametrize("words", [("config", "show"), ("config", "show", "--resolved")])
def test_it_prints_a_manifest_that_means_the_same(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every key, valid TOML, equal effective values; also of one with maps and awkward strings."""
    other = tmp_path / "agentbox.toml"
    other.write_text(TEXT)
    for path in (SHIPPED, other):
        shown(path, *words)
        again = parse(capsys.readouterr().out.encode(), "shown")
        assert again.findings == ()
        assert effective_values(again) == effective_values(load(path))


def test_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    """Features, listeners and kinds of slots stand at the end, as comments."""
    shown(SHIPPED, "config", "show", "--resolved")
    assert "# features: build, core" in capsys.readouterr().out


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


def test_sources() -> None:
    """A line, the default, the key it is derived from, or the key that decides it."""
    found = resolve_keys(parse(TEXT.encode(), "x"), load_features())
    assert {path: found[path].source for path in found if path.startswith("agents.a.limits") and "default" not in found[path].source} == {
        "agents.a.limits.pids": "limits.pids, line 6",
        "agents.a.limits.fds": "line 11",
    }  # fmt: skip
    assert found["agents.a.limits.memory"].source == "limits.memory, default"
    assert found["limits.pids"].source == "line 6"
    assert found["limits.fds"].source == "default"
    assert found["adapters.pods.required"].source == "adapters.pods.use, line 4"
    assert found["mesh.token_env"].source == "mesh.token_file, line 8"


def test_what_a_key_touches() -> None:
    """Files by trying another value; nothing outside of the box for live and boot keys; rules by name."""
    found = resolve_keys(parse(TEXT.encode(), "x"), load_features())
    assert {"docker-compose.yml", "kubernetes.yaml", "podman-run.txt"} <= set(
        found["resources.memory"].files
    )
    assert "kubernetes.yaml" not in found["resources.pids"].files
    assert found["limits.memory"].files == found["adapters.beads.use"].files == ()
    assert "E102" in found["resources.memory"].rules
    assert str(found["api.port"]).startswith("default; rebuild: image, docker-compose.yml")


def test_what_nothing_reads() -> None:
    """By its condition, since nothing reads it, or because it is not supported yet."""
    found = resolve_keys(parse(TEXT.encode(), "x"), load_features())
    assert (
        found["adapters.memory.pool_size"].unread
        == 'only while `adapters.memory.use` is "external-pg"'
    )
    assert found["adapters.memory.endpoint"].unread == "no choice of `adapters.memory.use` does"
    assert found["backup.keep"].unread == ""
    assert found["limits.memory"].unread == ""

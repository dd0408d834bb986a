"""`agentbox config diff`: changes, required actions and effects."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.main import cli
from agentbox.host.cli.manifest_diff import compare
from agentbox.host.cli.manifest_effects import compare_effects
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.features.model import Feature, FixedPort, Gate, SecurityExceptionNeed
from agentbox.manifest.load import parse

BASE = '[meta]\nschema_version = 1\n[adapters]\npods.use = "off"\nmemory.use = "off"\n'


def call(*words: str | Path) -> int:
    """The exit code of one call."""
    return int(cli.main(["config", "diff", *map(str, words)], standalone_mode=False) or 0)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """OLD is the smallest manifest; NEW is to be written."""
    old = tmp_path / "old.toml"
    old.write_text(BASE)
    return old, tmp_path / "new.toml"


def rows(
    before: str, after: str, features: dict[str, Feature] | None = None
) -> set[tuple[str, str, str]]:
    """Area, sign and name of every effect of a change."""
    sides = [parse((BASE + text).encode(), "x") for text in (before, after)]
    found = compare_effects(
        sides[0], sides[1], features if features is not None else load_features()
    )
    assert found.planning_error == ""
    return {(row.area, row.sign, row.name) for row in found.rows}


def test_a_default_written_out_is_no_change(
    two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Effective values are compared: exit code 0 and one word."""
    two[1].write_text(BASE + "[api]\nport = 9090\n")
    assert call(*two) == 0
    assert capsys.readouterr().out == "equal\n"


def test_text(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """One line per key, lowest class first; its effects; the required action at the end."""
    two[1].write_text(
        BASE + '[api]\nport = 9191\n[limits]\nmemory = "1GiB"\n[security.exceptions.desktop]\n'
    )
    assert call(*two) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["live", "limits.memory", '"2GiB"', "->", '"1GiB"']
    assert ["rebuild", "api.port", "9090", "->", "9191"] in lines
    assert any(
        line[:3] == ["recreate", "security.exceptions.desktop.builtin", "absent"] for line in lines
    )
    assert [
        "port",
        "~",
        "api",
        "(api.port)",
        "9090",
        "on",
        "127.0.0.1",
        "->",
        "9191",
        "on",
        "127.0.0.1",
    ] in lines
    assert ["file", "~", "docker-compose.yml"] in lines
    assert lines[-1] == ["needed:", "rebuild.", "Run", "`agentbox", "up`."]


def test_json(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The same as data, by `--format json` and by the common `--json`."""
    two[1].write_text(BASE + '[resources]\nmemory = "8GiB"\n')
    assert call(*two, "--format", "json") == 1
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(found) == {"changes", "effects", "not_planned", "needed"}
    assert found["changes"] == [
        {"key": "resources.memory", "apply": "recreate", "old": "4GiB", "new": "8GiB", "brings": []}
    ]
    assert found["needed"] == "recreate"
    assert cli.main(["--json", "config", "diff", *map(str, two)], standalone_mode=False) == 1
    assert json.loads(capsys.readouterr().out) == found


def test_an_added_agent_counts_by_what_it_says(two: tuple[Path, Path]) -> None:
    """Its keys at their default are no change: a live agent needs no new container, one with a variable does."""
    two[1].write_text(BASE + '[agents.a]\ncommand = ["bash"]\nmax_instances = 1\n')
    assert [(change.key, change.old) for change in compare(*two).changes] == [
        ("agents.a.command", None)
    ]
    assert compare(*two).required_apply == "live"
    two[1].write_text(BASE + '[agents.a]\ncommand = ["bash"]\nenv = ["LANG"]\n')
    assert compare(*two).required_apply == "recreate"


def test_an_empty_exception_is_a_change(two: tuple[Path, Path]) -> None:
    """Its presence enables its built-in delta."""
    two[1].write_text(BASE + "[security.exceptions.desktop]\n")
    assert compare(*two).required_apply == "recreate"


def test_a_live_change_alters_no_file_outside_of_the_box() -> None:
    """Only the plan, which has the digest of every value."""
    found = rows("", '[limits]\nmemory = "1GiB"\n')
    assert found == {("file", "~", "plan.json")}


def test_privileges_secrets_and_findings() -> None:
    """Memory mounts by size, variables by name, and the rules that speak of the change."""
    found = rows(
        "",
        '[resources]\ntmp_size = "512MiB"\n[api]\npublish_address = "0.0.0.0"\ntoken_env = "OTHER"\n',
    )
    assert ("privilege", "~", "memory at /tmp") in found
    assert {("secret", "+", "OTHER"), ("secret", "-", "AGENTBOX_API_TOKEN")} <= found
    assert ("finding", "+", "W206 api.publish_address") in found
    assert ("package", "+", "debian htop") in rows("", '[image]\nextra_packages = ["htop"]\n')


EDITOR = Feature(
    name="editor",
    gate=Gate(key="toolchains.code_server", values=(True,)),
    debian=("editor", "editor-data"),
    probes=({"id": "editor-runs", "kind": "path", "path": "/usr/bin/editor", "type": "exec", "reason": "it is asked for"},),
    ports=(FixedPort(name="http", port=8080),),
    exception=SecurityExceptionNeed(key="code-server", need="advised"),
)  # fmt: skip


def test_a_feature_brings_what_its_file_says(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages, probes, ports, and the missing exception, with the rule that needs it."""
    others = {
        name: feature for name, feature in load_features().items() if feature.gate != EDITOR.gate
    }
    features = {**others, "editor": EDITOR}
    monkeypatch.setattr("agentbox.host.cli.manifest_diff.load_features", lambda: features)
    two[1].write_text(BASE + "[toolchains]\ncode_server = true\n")
    (change,) = compare(*two).changes
    assert change.brings == (
        "+ feature editor: 2 packages, 1 probe",
        "+ exception code-server needed (W021)",
    )
    names = {(row.area, row.sign, row.name) for row in compare(*two).effects.rows}
    assert {
        ("feature", "+", "editor"),
        ("package", "+", "debian editor-data"),
        ("port", "+", "http (editor)"),
        ("probe", "+", "editor-runs"),
    } <= names
    (back,) = compare(two[1], two[0]).changes
    assert back.brings == ("- feature editor",)


def test_what_cannot_be_planned_is_said(
    two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Non-schema findings do not stop it; parts that cannot be compared are reported with the reason."""
    two[1].write_text(BASE + "[api]\nport = 9091\n")
    assert call(*two) == 1
    shown = capsys.readouterr().out
    assert "finding     + E013 api.port" in shown
    assert "not compared: cannot plan port 9091" in shown


@pytest.mark.parametrize("broken", ["a = 1\n", "a = \n", None])
def test_what_cannot_be_compared(tmp_path: Path, broken: str | None) -> None:
    """No TOML, no manifest, no file: exit code 2, naming the file."""
    other = tmp_path / "x.toml"
    if broken is not None:
        other.write_text(broken)
    with pytest.raises(AgentboxError) as raised:
        call(CHECKOUT / "agentbox.toml", other)
    assert raised.value.exit_code == 2
    assert "x.toml" in raised.value.message

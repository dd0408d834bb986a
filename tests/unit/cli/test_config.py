"""`agentbox config`: validate, explain, show, diff, with their exit codes."""

import io
import json
import sys
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.main import cli

SHIPPED = CHECKOUT / "agentbox.toml"
GOOD = '[meta]\nschema_version = 1\n[adapters]\npods.use = "off"\nmemory.use = "off"\n'


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest with one warning (and its notice), and one error that the environment decides."""
    path = tmp_path / "agentbox.toml"
    path.write_text(GOOD + '[api]\npublish_address = "0.0.0.0"\n')
    (tmp_path / "agentbox.lock").write_text((CHECKOUT / "agentbox.lock").read_text())
    return path


def call(*words: str | Path) -> int:
    """The exit code of one call."""
    return int(cli.main([*map(str, words)], standalone_mode=False) or 0)


def test_the_shipped_manifest_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """No finding at all with the lock beside it, also with `--strict`."""
    assert call("config", "validate", SHIPPED, "--strict") == 0
    assert capsys.readouterr().out == "0 errors, 0 warnings, 0 info\n"


def test_text(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`PATH:LINE:COL: SEVERITY CODE KEY: MESSAGE`, the remedy below, the sum at the end, no colour."""
    assert call("config", "validate", manifest) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{manifest}:7:1: info I204 api.publish_address: ")
    assert lines[2].startswith(f"{manifest}:7:1: warning W206 api.publish_address: ")
    assert lines[3].startswith('    Set api.publish_address = "127.0.0.1"')
    assert lines[-1] == "0 errors, 1 warnings, 1 info"
    assert "\x1b" not in "".join(lines)


def test_strict_and_quiet(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings decide with `--strict`; `--quiet` prints what decides and no sum."""
    assert call("config", "validate", manifest, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert call("config", "validate", manifest, "--strict", "--quiet") == 1
    assert [line.split()[1:3] for line in capsys.readouterr().out.splitlines()[::2]] == [
        ["warning", "W206"]
    ]


def test_json(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document, by `--format json` and by the common `--json`."""
    assert call("config", "validate", manifest, "--format", "json") == 0
    one = json.loads(capsys.readouterr().out)
    assert call("--json", "config", "validate", manifest) == 0
    assert json.loads(capsys.readouterr().out) == one
    assert set(one) == {"path", "valid", "counts", "findings", "not_evaluated", "rules_run"}
    assert one["counts"] == {"error": 0, "warning": 1, "info": 1}


def test_a_file_that_is_no_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1, one finding with its position."""
    path = tmp_path / "x.toml"
    path.write_text("a = \n")
    assert call("config", "validate", path) == 1
    assert f"{path}:1:5: error E000: not TOML" in capsys.readouterr().out


def test_no_such_file(tmp_path: Path) -> None:
    """Exit 2 and one sentence."""
    with pytest.raises(AgentboxError, match="no such file") as raised:
        call("config", "validate", tmp_path / "x.toml")
    assert raised.value.exit_code == 2


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`-` reads stdin and uses no lock."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert call("config", "validate", "-", "--strict") == 0
    assert "0 errors" in capsys.readouterr().out


def test_the_environment_is_read_on_request(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process environment has priority over the `.env` beside the manifest."""
    manifest.write_text(
        GOOD + '[api]\nauth = "token"\n[mesh]\nmode = "host"\ntoken_env = "MY_MESH_TOKEN"\n'
    )
    monkeypatch.delenv("MY_MESH_TOKEN", raising=False)

    def codes(*words: str) -> set[str]:
        from agentbox.host.cli.validation_run import ValidationRun

        return {
            found.code for found in ValidationRun(manifest, check_env=bool(words)).report().findings
        }

    assert "E017" not in codes()
    assert "E017" in codes("--check-env")
    (manifest.parent / ".env").write_text("MY_MESH_TOKEN=abc\n")
    assert "E017" not in codes("--check-env")
    monkeypatch.setenv("MY_MESH_TOKEN", "change-me")
    assert "E018" in codes("--check-env")


def test_a_missing_lock_warns(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """W502, at the nearest written key."""
    (manifest.parent / "agentbox.lock").unlink()
    assert call("config", "validate", manifest) == 0
    assert "warning W502 image.source" in capsys.readouterr().out


@pytest.mark.parametrize(
    "what",
    [
        "E103",
        "w206",
        "resources.memory",
        "adapters.memory",
        "E021",
        "security.exceptions.desktop.tmpfs",
    ],
)
def test_explain(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Codes in either case, keys, tables, retired codes."""
    assert call("--manifest", SHIPPED, "config", "explain", what) == 0
    assert what.upper() in capsys.readouterr().out.upper()


def test_explain_says_where_a_value_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of the manifest, or the default."""
    call("--manifest", SHIPPED, "--json", "config", "explain", "meta.name")
    written = json.loads(capsys.readouterr().out)
    call("--manifest", SHIPPED, "--json", "config", "explain", "meta.dev")
    absent = json.loads(capsys.readouterr().out)
    assert (written["value"], written["line"], written["apply"]) == ("agentbox", 5, "recreate")
    assert (absent["value"], absent["line"]) == (False, None)


def test_explain_a_code_that_is_not_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    """Its reason, and what replaces it."""
    call("--manifest", SHIPPED, "config", "explain", "e009")
    assert capsys.readouterr().out.splitlines()[0].startswith("E009 is not in use: reserved")
    call("--manifest", SHIPPED, "--json", "config", "explain", "E021")
    assert json.loads(capsys.readouterr().out)["successor"] == "W021"


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("E109", "E10"),
        ("E204", "I204"),
        ("Z999", "E7"),
        ("resources.memry", "resources.memory"),
        ("zz", "docs/"),
    ],
)
def test_explain_the_unknown(what: str, hint: str) -> None:
    """Exit 2 and the nearest one."""
    with pytest.raises(AgentboxError) as raised:
        call("--manifest", SHIPPED, "config", "explain", what)
    assert raised.value.exit_code == 2
    assert hint in raised.value.hint

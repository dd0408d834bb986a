"""Sources of the values of named secrets."""

from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.secrets import collect_secrets, read_env_file


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable overrides the `.env` beside the manifest; a name in neither is omitted."""
    (tmp_path / ".env").write_text("A=file\nB='quoted value'\nexport C=\"x\"\n# note\n\n")
    monkeypatch.setenv("A", "variable")
    monkeypatch.delenv("D", raising=False)
    assert collect_secrets(["A", "B", "C", "D"], tmp_path / "agentbox.toml", tmp_path / "kept") == {
        "A": "variable",
        "B": "quoted value",
        "C": "x",
    }


def test_a_bad_line_is_named_without_its_text(tmp_path: Path) -> None:
    """The message has the line number but not its content, which may be a secret."""
    (tmp_path / ".env").write_text("A=1\nhunter2 oops\n")
    with pytest.raises(AgentboxError) as caught:
        read_env_file(tmp_path / ".env")
    assert caught.value.exit_code is ExitCode.USAGE
    assert "line 2" in caught.value.message
    assert "hunter2" not in caught.value.message


def test_no_file_is_no_names(tmp_path: Path) -> None:
    """A missing `.env` is no error."""
    assert read_env_file(tmp_path / ".env") == {}


def test_a_variable_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable and shows none of its bytes."""
    monkeypatch.setenv("A", "x\udca7\udcff")
    with pytest.raises(AgentboxError) as caught:
        collect_secrets(["A"], tmp_path / "agentbox.toml", tmp_path / "kept")
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.message == "cannot use A of the environment: it is not valid UTF-8"

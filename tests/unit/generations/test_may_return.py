"""`upgrade.rollback`: whether a generation that is not good goes back by itself."""

import os
import pty
import sys
from pathlib import Path

import pytest

from agentbox.host.cli.commands.box.upgrade import may_return
from agentbox.host.cli.context import CliContext


def context(folder: Path, choice: str) -> CliContext:
    manifest = folder / "agentbox.toml"
    manifest.write_text(
        f'[meta]\nschema_version = 1\nname = "one"\n[upgrade]\nrollback = "{choice}"\n'
    )
    return CliContext(manifest_argument=manifest)


@pytest.mark.parametrize(("choice", "goes"), [("auto", True), ("ask", True), ("never", False)])
def test_without_a_terminal(tmp_path: Path, choice: str, goes: bool) -> None:
    """Nobody can be asked: `ask` goes back."""
    assert may_return(context(tmp_path, choice), "why", yes=False) is goes


@pytest.mark.parametrize(("answer", "goes"), [("y", True), ("n", False), ("", True)])
def test_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, goes: bool
) -> None:
    """`ask` asks there, unless --yes is given."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "r") as terminal, os.fdopen(leader, "w") as keyboard:
        monkeypatch.setattr(sys, "stdin", terminal)
        keyboard.write(f"{answer}\n")
        keyboard.flush()
        assert may_return(context(tmp_path, "ask"), "why", yes=False) is goes
        assert may_return(context(tmp_path, "ask"), "why", yes=True)

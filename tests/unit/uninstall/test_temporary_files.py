"""Temporary directories of commands that run are not touched."""

import os
import tempfile
from pathlib import Path

import pytest

from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.uninstall.temporary_files import temporary_removals


def test_only_those_of_an_ended_command_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pid and start time, or the pid alone; a name without a command is not ours to judge."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pid, ticks = os.getpid(), start_ticks(os.getpid())
    ended = {f"agentbox-flake-{pid}.{ticks + 1}-x", "agentbox-apt-4194304-x"}
    stays = {f"agentbox-flake-{pid}.{ticks}-x", f"agentbox-apt-{pid}-x", "agentbox-e2e-x", "other"}
    for name in ended | stays:
        (tmp_path / name).mkdir()
    for removal in temporary_removals():
        removal.remove()
    assert {path.name for path in tmp_path.iterdir()} == stays

"""Temporary directories of commands that run are not touched."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.uninstall.temporary_files import LABELS, temporary_removals


def test_only_those_of_an_ended_command_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pid and start time, or the pid alone; a name without a command is not ours to judge."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pid, ticks = os.getpid(), start_ticks(os.getpid())
    ended = {f"agentbox-flake-{pid}.{ticks + 1}-ab_12xyz", "agentbox-apt-4194304-aB3xyz"}
    stays = {
        f"agentbox-flake-{pid}.{ticks}-ab_12xyz",
        f"agentbox-apt-{pid}-aB3xyz",
        "agentbox-e2e-x",
    }
    for name in ended | stays:
        path = tmp_path / name
        path.touch() if name.startswith("agentbox-apt-") else path.mkdir()
    for removal in temporary_removals():
        removal.remove()
    assert {path.name for path in tmp_path.iterdir()} == stays


def test_names_that_only_look_like_ours_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup with a date, another label, no start time, another end, a file for a directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = "agentbox-flake-4194304.1-ab_12xyz"
    files = {"agentbox-backup-2026-11-27.tar", "agentbox-flake-4194304-ab_12xyz", ours}
    folders = {"agentbox-mine-4194304.1-ab_12xyz", f"{ours}-more", "agentbox-apt-4194304-aB3xyz"}
    for name in files:
        (tmp_path / name).touch()
    for name in folders:
        (tmp_path / name).mkdir()
    (tmp_path / "agentbox-pip-4194304.1-ab_12xyz").symlink_to(tmp_path)
    assert list(temporary_removals()) == []


def test_every_label_of_a_command_is_known() -> None:
    """Else its directories would stay."""
    texts = (path.read_text() for path in (CHECKOUT / "agentbox").rglob("*.py"))
    used = {label for text in texts for label in re.findall(r'temporary_prefix\("(.*?)"\)', text)}
    assert used == set(LABELS)

"""The file that the box writes into a directory of agents, to test whether it can, follows no
planted link."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentbox.box.boot.confine import is_directory_writable
from agentbox.box.boot.steps.p1_roots import check_writable
from agentbox.box.readiness.requirements.paths import is_writable
from agentbox.core.files.atomic import probe_file

NAMES = ("ready-probe", "root-probe", "probe")


@pytest.mark.parametrize("probe", [is_writable, check_writable, is_directory_writable])
def test_a_link_that_waits_is_not_written_through(
    tmp_path: Path, probe: Callable[[Path], object]
) -> None:
    """Its target keeps its bytes and the directory is reported as writable or not."""
    workspace, target = tmp_path / "workspace", tmp_path / "token"
    workspace.mkdir()
    target.write_text("secret")
    for name in NAMES:
        (workspace / f".agentbox-{name}-{os.getpid()}").symlink_to(target)
    assert probe(workspace)
    assert target.read_text() == "secret"
    assert len(list(workspace.iterdir())) == len(NAMES)


def test_a_name_that_is_taken_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even with a guessed name."""
    monkeypatch.setattr(os, "urandom", bytes)
    target = tmp_path / "token"
    target.write_text("secret")
    (tmp_path / f".agentbox-probe-{bytes(8).hex()}").symlink_to(target)
    with pytest.raises(FileExistsError), probe_file(tmp_path):
        pass
    assert target.read_text() == "secret"

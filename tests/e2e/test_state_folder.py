"""A state folder without space, or one that cannot be written: `up` names it, and works once that
has changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cli_box import CliBox, PreviousBuilds, mounted
from sampling import OneOfEach
from told import Told


def fill(folder: Path) -> None:
    """Leaves not one byte."""
    full = subprocess.run(
        ["dd", "if=/dev/zero", f"of={folder / 'fill'}", "bs=4096"], capture_output=True, check=False
    )
    assert b"No space left" in full.stderr


def test_a_full_state_folder(
    other: CliBox, told: Told, previous: PreviousBuilds, one_of_each: OneOfEach
) -> None:
    """Exit 3 wherever the space ends, naming the file; once there is space, `up` works; full again,
    a running box continues."""
    folder = other.folder / "state"
    with mounted("tmpfs", "size=400k", folder):
        for free_kib in map(int, one_of_each(("0", "8", "24", "40"), lambda kib: str(kib == "0"))):
            (folder / "fill").write_bytes(b"x" * 1024 * (400 - free_kib))
            ran = other("up")
            assert ran.code == 3, ran.err
            assert "No space left on device" in ran.error()[0]
            assert str(folder) in ran.error()[0]
            if free_kib == 0:
                told("The disk of the state folder is full", other, ran)
            other("down")
            shutil.rmtree(other.state, ignore_errors=True)
        (folder / "fill").unlink()
        other.take_image(previous)
        other.up()
        fill(folder)
        other.up()  # nothing changed: nothing to write
        assert other("run", "--", "echo", "fine").out == "fine\n"
        (folder / "fill").unlink()
        other.down()


@pytest.mark.sampled(3, family="refusals")
def test_a_state_folder_that_cannot_be_written(other: CliBox, told: Told, tmp_path: Path) -> None:
    """Exit 3, naming the directory and AGENTBOX_STATE_DIR."""
    folder = tmp_path / "there"
    other.environment["AGENTBOX_STATE_DIR"] = str(folder)
    with mounted("tmpfs", "ro", folder):
        ran = {"read-only": other("up")}
    folder.rmdir()
    folder.write_text("")
    ran["a file"] = other("up")
    other.environment["AGENTBOX_STATE_DIR"] = "/proc/agentbox"
    ran["closed"] = other("up")
    other.environment.clear()
    for where, found in ran.items():
        assert found.code == 3, where
        assert "cannot make the state directory" in found.error()[0]
        assert "AGENTBOX_STATE_DIR" in found.error()[1]
        told(f"The state folder cannot be written: {where}", other, found)

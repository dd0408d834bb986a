"""The private directories of an agent."""

import os
from pathlib import Path

from agentbox.agents.runs import home


def test_both_are_private(tmp_path: Path) -> None:
    """0700, created once, found by the next run."""
    made = home.create(tmp_path / "agent")
    (made[1] / "kept").touch()
    assert home.create(tmp_path / "agent") == made
    assert [path.stat().st_mode & 0o777 for path in (*made, tmp_path / "agent")] == [0o700] * 3
    assert (made[1] / "kept").exists()


def test_all_of_it_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Directories without permissions too; a link is removed, its target stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    folder = tmp_path / "agent"
    private, _ = home.create(folder)
    (private / "link").symlink_to(outside)
    (private / "closed" / "in").mkdir(parents=True)
    (private / "closed" / "in").chmod(0)
    (private / "closed").chmod(0)
    home.remove(folder)
    home.remove(folder)
    assert not folder.exists()
    assert (outside / "file").exists()
    assert os.access(outside, os.W_OK)


def test_folders_in_folders_without_end_are_removed(tmp_path: Path) -> None:
    """Deeper than a path, or a stack of calls, may be; the innermost without permissions. What an
    agent leaves must not stop the cleanup."""
    private, temp = home.create(tmp_path / "agent")
    place = os.open(private, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=place))
    os.fchmod(place, 0)
    os.close(place)
    home.remove_private(tmp_path / "agent")
    assert not private.exists()
    assert not temp.exists()

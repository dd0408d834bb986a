"""The state of a process-engine box is exchanged by renames, and an interruption is finished."""

from pathlib import Path

import pytest

from agentbox.core.paths import Paths
from agentbox.host.engines.process.volumes import mount, mounted, volume_prefix

NEW = {"state": "state-g2"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The state of today, and a restored one that waits."""
    for prefix, text in ((tmp_path, "old"), (tmp_path / "volumes" / "state-g2", "new")):
        Paths(prefix).state.mkdir(parents=True)
        (Paths(prefix).state / "which").write_text(text)
    return tmp_path


def which(root: Path) -> str:
    return (Paths(root).state / "which").read_text()


def test_a_volume_takes_the_place_of_another(root: Path) -> None:
    """And goes back; each keeps its data."""
    mount(root, {})
    assert which(root) == "old"
    mount(root, NEW)
    assert (which(root), mounted(root)) == ("new", "state-g2")
    assert which(volume_prefix(root, {})) == "old"
    mount(root, {})
    assert (which(root), mounted(root)) == ("old", "state")


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("wanted", [NEW, {}])
def test_an_interrupted_exchange_is_finished(
    root: Path, marked: bool, wanted: dict[str, str]
) -> None:
    """Killed between the renames, before or after the marker: no state is lost, either way."""
    aside = Paths(root / "volumes" / "state").state
    aside.parent.mkdir(parents=True)
    Paths(root).state.rename(aside)
    if marked:
        (root / "volumes" / "mounted").write_text("state-g2\n")
    mount(root, wanted)
    assert which(root) == ("new" if wanted else "old")
    assert which(volume_prefix(root, {} if wanted else NEW)) == ("old" if wanted else "new")


def test_a_volume_that_is_missing_changes_nothing(root: Path) -> None:
    """The present one stays in place."""
    with pytest.raises(FileNotFoundError):
        mount(root, {"state": "state-g9"})
    assert which(root) == "old"


def snapshots(prefix: Path, *names: str, text: str = "x") -> Path:
    """A folder of snapshots below the state of `prefix`."""
    folder = Paths(prefix).backups
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("lock", "repository.json", *names):
        (folder / name).write_text(text)
    return folder


def test_snapshots_of_two_volumes_are_joined(root: Path) -> None:
    """None is left in a volume that waits; the record of the mounted one stays."""
    target = snapshots(root, "s2.json", "s2.tar.zst", text="ours")
    waiting = snapshots(root / "volumes" / "state-g2", "s1.json", "s1.tar.zst")
    mount(root, {})
    assert sorted(path.name for path in target.iterdir()) == [
        "lock",
        "repository.json",
        "s1.json",
        "s1.tar.zst",
        "s2.json",
        "s2.tar.zst",
    ]
    assert (target / "repository.json").read_text() == "ours"
    assert not waiting.exists()


def test_two_snapshots_of_one_name_are_not_mixed(root: Path) -> None:
    """Nothing is moved, and the error names both folders."""
    target = snapshots(root, "s1.json", text="ours")
    waiting = snapshots(root / "volumes" / "state-g2", "s0.json", "s1.json")
    with pytest.raises(FileExistsError, match=r"s1\.json is in"):
        mount(root, {})
    assert (target / "s1.json").read_text() == "ours"
    assert (waiting / "s0.json").exists()


def test_snapshots_are_not_moved_through_a_link(root: Path, tmp_path: Path) -> None:
    """The box may have put it there, and the host is root."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    Paths(root).backups.symlink_to(elsewhere)
    snapshots(root / "volumes" / "state-g2", "s1.json")
    with pytest.raises(NotADirectoryError, match="is a link"):
        mount(root, {})
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]

"""The state of a process-engine box is exchanged by renames, and an interruption is finished."""

from contextlib import suppress
from pathlib import Path

import pytest

from agentbox.core.paths import Paths
from agentbox.host.engines.process.box_files import link_workspace
from agentbox.host.engines.process.volumes import (
    discard,
    mount,
    mounted,
    own_workspace,
    volume_prefix,
)

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


RESET = {
    "state": "state-g2",
    "branches": "branches-g2",
    "workspace": "workspace-g2",
    "backups": "backups-g2",
}


@pytest.fixture
def used(root: Path) -> Path:
    """A box with a workspace and snapshots, beside which an empty state waits."""
    snapshots(root, "s1.json", "s1.tar.zst")
    Paths(root).workspace.mkdir()
    (Paths(root).workspace / "file").write_text("old")
    return root


def contents(root: Path) -> tuple[str, bool, bool]:
    """Which state is mounted, and whether its snapshots and workspace are those of `used`."""
    own = own_workspace(Paths(root).workspace)
    workspace = own if own.exists() else Paths(root).workspace
    return which(root), (Paths(root).backups / "s1.json").exists(), (workspace / "file").exists()


def test_workspace_and_snapshots_go_with_their_generation(used: Path) -> None:
    """And come back; those that stay with the box do so."""
    mount(used, RESET)
    assert contents(used) == ("new", False, False)
    Paths(used).workspace.mkdir()
    mount(used, {})
    assert contents(used) == ("old", True, True)
    mount(used, {**RESET, "backups": "backups"})
    assert contents(used) == ("new", True, False)


def test_the_workspace_beside_a_project_goes_too(used: Path, tmp_path: Path) -> None:
    """The link to the project is left alone, and the project is."""
    project = tmp_path / "project"
    project.mkdir()
    link_workspace(Paths(used).workspace, project)
    mount(used, RESET)
    assert contents(used) == ("new", False, False)
    assert Paths(used).workspace.resolve() == project
    mount(used, {})
    assert contents(used) == ("old", True, True)


class Killed(Exception):
    """Stands for SIGKILL: nothing is done after it."""


@pytest.mark.parametrize("wanted", [RESET, {}])
@pytest.mark.parametrize("renames", range(8))
def test_an_exchange_that_was_killed_is_finished(
    used: Path, monkeypatch: pytest.MonkeyPatch, renames: int, wanted: dict[str, str]
) -> None:
    """After any number of renames, by the next one, either way; nothing is lost."""
    done, really = 0, Path.rename

    def rename(path: Path, target: Path) -> None:
        nonlocal done
        if done == renames:
            raise Killed
        done += 1
        really(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with suppress(Killed):
            mount(used, RESET)
    mount(used, wanted)
    assert contents(used) == (("new", False, False) if wanted else ("old", True, True))
    mount(used, {})
    assert contents(used) == ("old", True, True)


def test_volumes_that_wait_are_removed_by_name(used: Path) -> None:
    """Those of a generation that is forgotten; what is mounted stays."""
    mount(used, RESET)
    discard(used, RESET)
    assert contents(used) == ("new", False, False)
    for name in ("state", "workspace", "backups"):
        discard(used, {name: name})
    assert sorted(path.name for path in (used / "volumes").iterdir() if path.is_dir()) == [
        "state-g2"
    ]

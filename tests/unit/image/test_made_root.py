"""Trees of layers become one root, and a program of it runs without the machine's own files."""

import platform
import shutil
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.image.maintainer_scripts.root import MergedRoot

TRIPLET = f"{platform.machine()}-linux-gnu"


@pytest.fixture
def loader() -> Path:
    """This machine's loader, by the name that every ELF file of its kind requests."""
    return next(Path(f"/usr/lib/{TRIPLET}").glob("ld-linux*.so.*")).resolve()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that has `env` with the libraries it needs."""
    tree = tmp_path / "tree"
    for file in ("/usr/bin/env", f"/usr/lib/{TRIPLET}/libc.so.6"):
        place = tree / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)  # without the executable bit, as in the store
    return tree


def test_the_first_tree_wins_and_links_stay(tmp_path: Path, loader: Path) -> None:
    """Directories are joined; a path of two trees is the first's; a link keeps its target, also one
    to a directory."""
    for name, text in (("one", "first"), ("two", "second")):
        folder = tmp_path / name / "etc/app"
        folder.mkdir(parents=True)
        (folder / "same").write_text(text)
        (folder / name).write_text(text)
    (tmp_path / "two/lib").symlink_to("usr/lib")
    (tmp_path / "two/usr/lib").mkdir(parents=True)
    root = MergedRoot.merged([tmp_path / "one", tmp_path / "two"], loader, tmp_path / "root")
    assert root.files("etc") == ["app/one", "app/same", "app/two"]
    assert root.text("etc/app/same") == "first"
    assert (tmp_path / "root/lib").readlink() == Path("usr/lib")


def test_a_program_sees_only_what_it_is_given(tmp_path: Path, tree: Path, loader: Path) -> None:
    """It runs at the top of the root with exactly that environment, though the store keeps no executable bit."""
    root = MergedRoot.merged([tree], loader, tmp_path / "root")
    root.run("usr/bin/env", [], {})
    with pytest.raises(
        AgentboxError, match=r"cannot run /usr/bin/env -S \$\{WORD\}-here: .*a-here"
    ):
        root.run("usr/bin/env", ["-S", "${WORD}-here"], {"WORD": "a"})


def test_a_missing_file_is_named(tmp_path: Path, tree: Path, loader: Path) -> None:
    """A feature that lacks a package reports the file that no package has."""
    root = MergedRoot.merged([tree], loader, tmp_path / "root")
    with pytest.raises(AgentboxError, match="cannot read /etc/app: it is in no package"):
        root.text("etc/app")

"""One path, one owner; directories are shared; a list of entries survives being written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree import paths_and_modes
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import TreeEntry, read_entries, write_entries


def by_path(tree: Tree) -> dict[str, TreeEntry]:
    return {entry.path: entry for entry in tree.entries}


def test_a_file_brings_its_folders(tree: Tree) -> None:
    """Parents are created, belong to no package, and are root's."""
    tree.file("usr/share/x/y", b"text", "deb:x")
    found = by_path(tree)
    assert found["usr/share"] == TreeEntry(path="usr/share", type="dir", mode=0o755)
    assert (found["usr/share/x/y"].size, found["usr/share/x/y"].owner) == (4, "deb:x")
    assert tree.disk_path("usr/share/x/y").read_bytes() == b"text"


def test_equal_content_keeps_its_first_owner(tree: Tree) -> None:
    """Two packages with the same file are no conflict."""
    tree.file("a", b"same", "deb:one")
    tree.file("a", b"same", "deb:two")
    assert by_path(tree)["a"].owner == "deb:one"


@pytest.mark.parametrize(
    "second",
    [
        lambda tree: tree.file("usr/bin/a", b"two", "deb:two", 0o755),
        lambda tree: tree.file("usr/bin/a", b"one", "deb:two", 0o644),
        lambda tree: tree.link("usr/bin/a", "b", "deb:two"),
    ],
    ids=["content", "mode", "kind"],
)
def test_a_conflict_names_both_owners(tree: Tree, second: Callable[[Tree], None]) -> None:
    """Other bytes, another mode or another kind of file at one path stop the build."""
    tree.file("usr/bin/a", b"one", "deb:one", 0o755)
    with pytest.raises(AgentboxError, match=r"usr/bin/a .*deb:one.*deb:two"):
        second(tree)


def test_a_file_is_no_folder(tree: Tree) -> None:
    """A path below a file is refused, naming the file's owner."""
    tree.file("usr/bin/a", b"one", "deb:one")
    with pytest.raises(AgentboxError, match=r"usr/bin/a .*deb:one.*a directory"):
        tree.file("usr/bin/a/b", b"", "deb:two")


def test_the_list_is_canonical(tree: Tree, tmp_path: Path) -> None:
    """Whatever the order of adding, the written list has the same bytes, and reads back equal."""
    tree.file("b/c", b"1", "o")
    tree.link("a", "b/c", "o")
    write_entries(tree.entries, tmp_path / "one.json")
    write_entries(list(reversed(tree.entries)), tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert [entry.path for entry in read_entries(tmp_path / "one.json")] == ["a", "b", "b/c"]


@pytest.mark.parametrize(
    ("given", "placed"),
    [("./bin/sh", "usr/bin/sh"), ("/sbin/x", "usr/sbin/x"), ("./lib64/ld.so", "usr/lib64/ld.so"), ("./bin", "bin"),
     ("./usr/bin/x", "usr/bin/x"), ("etc/bin/x", "etc/bin/x"), ("./", "")],
)  # fmt: skip
def test_old_places_lead_into_usr(given: str, placed: str) -> None:
    """`/bin`, `/lib`, `/lib64` and `/sbin` are links, so files that packages put there go to their
    targets."""
    assert paths_and_modes.image_path(given) == placed


def test_no_path_leaves_the_root() -> None:
    """`..` in a package's path is refused."""
    with pytest.raises(AgentboxError, match="outside the root"):
        paths_and_modes.image_path("./usr/../../etc/passwd")


@pytest.mark.parametrize(
    ("path", "gone"),
    [("usr/share/man/man1/x.1", True), ("usr/share/locale", True), ("usr/share/doc/x/changelog", True),
     ("usr/share/doc/x/examples/copyright.txt", True), ("usr/share/doc/x/copyright", False),
     ("usr/share/doc/x", False), ("usr/share/manual", False), ("usr/share/lintian/overrides/x", True)],
)  # fmt: skip
def test_documentation_goes_but_copyright_stays(path: str, gone: bool) -> None:
    """Man, info, locale, lintian and doc are dropped; the licence texts are not."""
    assert paths_and_modes.is_dropped(path) is gone


def test_nothing_is_set_id_or_writable_by_others() -> None:
    """Whatever bits a package sets, the image has none of these."""
    assert paths_and_modes.file_mode(0o6777) == 0o755
    assert paths_and_modes.file_mode(0o0640) == 0o640

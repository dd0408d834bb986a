"""Each check of the layers passes a sound image and names what is wrong with another."""

from pathlib import Path

import pytest
from small_images import layer

from agentbox.host.image.check.budget import exceeding_budget
from agentbox.host.image.check.elf import read_elf
from agentbox.host.image.check.layers import ImageRoot
from agentbox.host.image.check.links import dangling_links
from agentbox.host.image.check.modes import unexpected_modes
from agentbox.host.image.check.shared_libraries import missing_libraries
from agentbox.host.image.check.store_references import store_references
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import TreeEntry, write_entries

SHELL = Path("/bin/sh").resolve()


def root_of(tree: Tree, name: str = "base") -> ImageRoot:
    """The layer of this tree as a root."""
    listed = tree.root.with_suffix(".json")
    write_entries(tree.entries, listed)
    return ImageRoot.of([{"name": name, "tree": str(tree.root), "listed": str(listed)}])


def test_links_are_followed_as_a_kernel_would(tree: Tree) -> None:
    """Absolute, relative, through directories that are links; dangling and circular ones are found."""
    tree.link("lib", "usr/lib", "o")
    tree.file("usr/lib/x.so.1", b"", "o")
    tree.link("usr/lib/x.so", "x.so.1", "o")
    tree.link("opt/abs", "/lib/x.so", "o")
    tree.link("opt/up", "../usr/lib/./x.so", "o")
    tree.link("etc/mtab", "../proc/self/mounts", "o")
    assert dangling_links(root_of(tree)) == []
    tree.link("opt/bad", "/usr/lib/y.so", "deb:bad")
    tree.link("opt/one", "two", "o")
    tree.link("opt/two", "one", "o")
    found = dangling_links(root_of(tree))
    assert (
        found[0] == "layer base, opt/bad (deb:bad): points to /usr/lib/y.so, which is in no layer"
    )
    assert len(found) == 3


def test_only_listed_folders_are_the_boxs(tree: Tree) -> None:
    """A set-id bit, a group write bit and a foreign owner are found; the box's own directories are
    not."""
    tree.directory("workspace")
    tree.directory("tmp")
    assert unexpected_modes(root_of(tree)) == []
    tree._entries["a"] = TreeEntry(path="a", type="file", mode=0o4755, owner="o")
    tree._entries["b"] = TreeEntry(path="b", type="file", mode=0o664, owner="o")
    tree._entries["c"] = TreeEntry(path="c", type="dir", mode=0o755, uid=1000, gid=1000)
    assert unexpected_modes(root_of(tree)) == [
        "layer base, a: mode 4755", "layer base, b: mode 664", "layer base, c: owned by 1000:1000",
    ]  # fmt: skip


def test_a_store_path_is_found(tree: Tree) -> None:
    """In the bytes of a file or as a link's target; the bare text `/nix/store/` is not a path."""
    tree.file("doc", b"lives in /nix/store/ and nowhere else", "o")
    assert store_references(root_of(tree)) == []
    path = "/nix/store/" + "0123456789abcdfghijklmnpqrsvwxyz" + "-x"
    tree.file("bin/x", b"\0" * 100 + path.encode(), "o")
    tree.link("l", path, "o")
    assert len(store_references(root_of(tree))) == 2


def test_an_elf_file_is_read() -> None:
    """The shell of this machine has an interpreter and needs the C library."""
    found = read_elf(SHELL)
    assert found is not None
    assert found.interpreter.startswith("/lib")
    assert "libc.so.6" in found.needed
    assert read_elf(Path(__file__)) is None


def arch_of_this_machine() -> str:
    found = read_elf(SHELL)
    assert found is not None
    return found.machine


def test_a_library_that_is_missing_is_named(tree: Tree) -> None:
    """A shell alone lacks its interpreter and its C library; with both it is complete."""
    arch = arch_of_this_machine()
    elf = read_elf(SHELL)
    assert elf is not None
    tree.file("usr/bin/sh", SHELL.read_bytes(), "deb:dash", 0o755)
    found = missing_libraries(root_of(tree), arch)
    assert any("libc.so.6" in each and "deb:dash" in each for each in found)
    assert any("interpreter" in each for each in found)
    for name in elf.needed:
        tree.file(f"usr/lib/{name}", b"", "deb:libc6")
    tree.file(elf.interpreter.lstrip("/").replace("lib", "usr/lib", 1), b"", "deb:libc6")
    for link in ("lib", "lib64"):
        tree.link(link, f"usr/{link}", "o")
    assert missing_libraries(root_of(tree), arch) == []


def test_a_foreign_machine_is_named(tree: Tree) -> None:
    """A file for another processor does not belong in the image."""
    tree.file("usr/bin/sh", SHELL.read_bytes(), "deb:dash", 0o755)
    other = "arm64" if arch_of_this_machine() == "amd64" else "amd64"
    assert missing_libraries(root_of(tree), other) == [
        f"layer base, usr/bin/sh (deb:dash): is for {arch_of_this_machine()}"
    ]


def test_samples_and_what_is_only_suggested_are_no_faults(tree: Tree) -> None:
    """A file below /usr/share is never loaded; a plug-in for a library that its package only suggests is excused by
    owner and name, and the same file of another owner is not."""
    arch = arch_of_this_machine()
    tree.file("usr/share/go/testdata/sample", SHELL.read_bytes(), "deb:golang-src")
    tree.file("usr/lib/caca/libgl_plugin.so.0", SHELL.read_bytes(), "deb:libcaca0")
    tree.link("usr/lib/qt-default/qtchooser/default.conf", "/gone", "deb:libqt5core5t64")
    assert missing_libraries(root_of(tree), arch) == []
    assert dangling_links(root_of(tree)) == []
    tree.file("usr/lib/other/libgl_plugin.so.0", SHELL.read_bytes(), "deb:other")
    tree.link("usr/lib/other/qtchooser/default.conf", "/gone", "deb:other")
    assert missing_libraries(root_of(tree), arch)
    assert len(dangling_links(root_of(tree))) == 1


@pytest.mark.parametrize(("budget", "count"), [(10_000_000, 0), (10, 1)])
def test_the_budget_is_held(tmp_path: Path, budget: int, count: int) -> None:
    """A sum above the budget is one sentence with every layer's share."""
    rows = [layer(tmp_path, "base", {"a": b"a" * 1000})]
    found = exceeding_budget(rows, budget)
    assert len(found) == count
    assert all("base" in each for each in found)


def test_an_empty_image_passes_nothing(tmp_path: Path) -> None:
    """The runner rejects an image without files, whatever the checks."""
    from agentbox.host.image.check.__main__ import main

    tree = Tree(tmp_path / "t")
    write_entries(tree.entries, tmp_path / "l.json")
    spec = tmp_path / "spec.json"
    spec.write_text(
        f'{{"arch": "amd64", "layers": [{{"name": "x", "tree": "{tree.root}", "listed": "{tmp_path}/l.json"}}]}}'
    )
    with pytest.raises(SystemExit, match="the image has no files"):
        main("layers", str(spec), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()

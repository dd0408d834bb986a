"""npm tarballs are unpacked where the feature's dependency tree puts them."""

import io
import tarfile
from pathlib import Path

import pytest

from agentbox.errors import AgentboxError
from agentbox.image.tree.assemble import Tree
from agentbox.image.tree.npm import add_tarball


def tarball(folder: Path, members: dict[str, bytes], *, link: str = "") -> Path:
    file = folder / "x-1.0.tgz"
    with tarfile.open(file, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755 if name.endswith("cli.js") else 0o664
            tar.addfile(info, io.BytesIO(data))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    return file


def test_a_tarball_goes_to_each_of_its_places(tree: Tree, tmp_path: Path) -> None:
    """Without its top folder; `bin` and `lib` inside a package stay; of the mode only the executable bit."""
    file = tarball(tmp_path, {"package/package.json": b"{}", "package/bin/cli.js": b"#!", "package/lib/a.js": b"1"})
    add_tarball(tree, "@scope/x", file, ["codex/node_modules/@scope/x", "other/node_modules/@scope/x"])
    found = {entry.path: entry for entry in tree.entries if entry.type == "file"}
    assert len(found) == 6
    cli = found["opt/agentbox/npm/codex/node_modules/@scope/x/bin/cli.js"]
    assert (cli.mode, cli.owner) == (0o755, "npm:@scope/x")
    assert found["opt/agentbox/npm/other/node_modules/@scope/x/lib/a.js"].mode == 0o644


def test_links_and_ways_out_are_refused(tree: Tree, tmp_path: Path) -> None:
    """A link could lead anywhere, and `..` does."""
    with pytest.raises(AgentboxError, match="no regular file"):
        add_tarball(tree, "x", tarball(tmp_path, {}, link="package/evil"), ["f/x"])
    with pytest.raises(AgentboxError, match="leaves the root"):
        add_tarball(tree, "x", tarball(tmp_path, {"package/../../etc/passwd": b""}), ["f/x"])

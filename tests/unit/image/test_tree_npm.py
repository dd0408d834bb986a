"""npm tarballs are unpacked where the feature's dependency tree puts them."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.npm import add_tarball

ELF = {"x64": 62, "arm64": 183}  # e_machine


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
    """Without its top directory; `bin` and `lib` inside a package stay; of the mode only the
    executable bit."""
    file = tarball(
        tmp_path,
        {"package/package.json": b"{}", "package/bin/cli.js": b"#!", "package/lib/a.js": b"1"},
    )
    add_tarball(
        tree,
        "@scope/x",
        file,
        ["codex/node_modules/@scope/x", "other/node_modules/@scope/x"],
        "amd64",
    )
    found = {entry.path: entry for entry in tree.entries if entry.type == "file"}
    assert len(found) == 6
    cli = found["opt/agentbox/npm/codex/node_modules/@scope/x/bin/cli.js"]
    assert (cli.mode, cli.owner) == (0o755, "npm:@scope/x")
    assert found["opt/agentbox/npm/other/node_modules/@scope/x/lib/a.js"].mode == 0o644


def test_links_and_ways_out_are_refused(tree: Tree, tmp_path: Path) -> None:
    """A link could lead anywhere, and `..` does."""
    with pytest.raises(AgentboxError, match="not a regular file"):
        add_tarball(tree, "x", tarball(tmp_path, {}, link="package/evil"), ["f/x"], "amd64")
    with pytest.raises(AgentboxError, match="outside the root"):
        add_tarball(
            tree, "x", tarball(tmp_path, {"package/../../etc/passwd": b""}), ["f/x"], "amd64"
        )


def test_what_bin_names_is_executable(tree: Tree, tmp_path: Path) -> None:
    """As npm creates it, whatever mode the packer set: one string or a table, with or without `./`."""
    manifest = json.dumps({"bin": {"x": "./lib/x.js", "y": "y.js"}}).encode()
    members = {
        "package/package.json": manifest,
        "package/lib/x.js": b"#!",
        "package/y.js": b"#!",
        "package/z.js": b"",
    }
    add_tarball(tree, "x", tarball(tmp_path, members), ["f/x"], "amd64")
    modes = {
        entry.path.rpartition("/")[2]: entry.mode for entry in tree.entries if entry.type == "file"
    }
    assert modes == {"package.json": 0o644, "x.js": 0o755, "y.js": 0o755, "z.js": 0o644}


def test_programs_of_other_machines_are_left_out(tree: Tree, tmp_path: Path) -> None:
    """Nothing in an image may be for another machine; a package may carry one binary for each."""
    members = {
        f"package/{name}/rg": b"\x7fELF" + bytes(14) + bytes((number, 0))
        for name, number in ELF.items()
    }
    add_tarball(tree, "x", tarball(tmp_path, members), ["f/x"], "arm64")
    assert [entry.path for entry in tree.entries if entry.type == "file"] == [
        "opt/agentbox/npm/f/x/arm64/rg"
    ]

"""A layer is a function of its list and its bytes."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

from agentbox.host.image.oci.layer import write_layer
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import write_entries
from agentbox.host.image.verify.members import list_members, tar_members


def filled(folder: Path) -> Tree:
    tree = Tree(folder)
    tree.directory("tmp")
    tree.directory("var/lib/agentbox")
    tree.file("usr/bin/x", b"#!x", "deb:x", 0o755)
    tree.file("usr/share/" + "n" * 120, b"", "deb:x")
    tree.link("bin", "usr/bin", "generated:skeleton")
    return tree


def test_the_tar_says_what_the_list_says(tmp_path: Path) -> None:
    """Order by bytes, parents first; fixed time, modes, owners; no names; complete long paths."""
    tree = filled(tmp_path / "t")
    out = io.BytesIO()
    found = write_layer(tree.entries, tree.root, out)
    plain = gzip.decompress(out.getvalue())
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = {info.name: info for info in tar}
    assert list(members) == sorted(members, key=str.encode)
    assert {info.mtime for info in members.values()} == {1}
    assert {(info.uname, info.gname) for info in members.values()} == {("", "")}
    assert (members["var/lib/agentbox"].uid, members["tmp"].mode, members["usr/bin/x"].mode) == (
        1000,
        0o1777,
        0o755,
    )
    assert members["bin"].linkname == "usr/bin"
    assert "usr/share/" + "n" * 120 in members
    assert found == {
        "digest": f"sha256:{hashlib.sha256(out.getvalue()).hexdigest()}",
        "diff_id": f"sha256:{hashlib.sha256(plain).hexdigest()}",
        "size": len(out.getvalue()),
    }


def test_neither_place_nor_time_matter(tmp_path: Path) -> None:
    """Two trees in two directories pack to the same bytes, with no time and no name in the gzip
    header."""
    packed = []
    for folder in ("one", "two"):
        tree, out = filled(tmp_path / folder), io.BytesIO()
        write_layer(tree.entries, tree.root, out)
        packed.append(out.getvalue())
    assert packed[0] == packed[1]
    assert packed[0][3:8] == b"\0\0\0\0\0"  # flags (no name) and time of the header, RFC 1952


def test_equal_files_are_stored_once(tmp_path: Path) -> None:
    """Debian's git has the same program under two paths; a mode of its own keeps a file of its own."""
    tree, out = Tree(tmp_path / "t"), io.BytesIO()
    program = bytes(range(256)) * 64
    tree.file("usr/bin/git", program, "deb:git", 0o755)
    tree.file("usr/lib/git-core/git", program, "deb:git", 0o755)
    tree.file("usr/lib/git-core/data", program, "deb:git", 0o644)
    tree.file("usr/share/a", b"short", "deb:git")
    tree.file("usr/share/b", b"short", "deb:git")
    write_layer(tree.entries, tree.root, out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
        links = {info.name: info.linkname for info in tar if info.islnk()}
        stream = tar.extractfile("usr/lib/git-core/git")
        assert stream is not None
        assert stream.read() == program
    assert links == {"usr/lib/git-core/git": "usr/bin/git"}
    listed = tmp_path / "tree.json"
    write_entries(tree.entries, listed)
    assert tar_members(io.BytesIO(out.getvalue())) == list_members(listed)

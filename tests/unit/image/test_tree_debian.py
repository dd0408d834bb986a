"""Debian packages are unpacked, rewritten and stripped as the image needs it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree import deb
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.debian import add_certificates, add_package, add_skeleton


def test_a_package_is_unpacked(tree: Tree, make_deb: Callable[..., Path]) -> None:
    """Files, links and hard links arrive, below usr, without set-id bits, with the stanza that scanners read."""
    file = make_deb(
        "tool",
        {"./bin/tool": b"#!x", "./usr/share/man/man1/tool.1": b"gone"},
        links={"./usr/bin/t": "tool"},
        hard={"./usr/bin/same": "./bin/tool"},
        modes={"./bin/tool": 0o4755},
        folders=("./usr/", "./usr/share/tool/"),
    )
    add_skeleton(tree)
    add_package(tree, "tool", file)
    found = {entry.path: entry for entry in tree.entries}
    assert (found["usr/bin/tool"].mode, found["usr/bin/tool"].owner) == (0o755, "deb:tool")
    assert found["usr/bin/t"].target == "tool"
    assert found["usr/bin/same"].type == "file"
    assert tree.disk_path("usr/bin/same").read_bytes() == b"#!x"
    assert found["usr/share/tool"].mode == 0o755
    assert "usr/share/man/man1/tool.1" not in found
    assert tree.disk_path("var/lib/dpkg/status.d/tool").read_text().startswith("Package: tool\n")


def test_the_skeleton_is_the_box(tree: Tree, make_deb: Callable[..., Path]) -> None:
    """The four links, the box's own directories with their owner, and a real /var/run, whatever
    base-files ships."""
    add_skeleton(tree)
    add_package(
        tree,
        "base-files",
        make_deb("base-files", {}, links={"./var/run": "/run", "./lib": "usr/lib"}),
    )
    found = {entry.path: entry for entry in tree.entries}
    assert {name: found[name].target for name in ("bin", "lib", "lib64", "sbin")} == {
        "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin",
    }  # fmt: skip
    assert (found["var/run"].type, found["var/run"].uid) == ("dir", 1000)
    assert (found["tmp"].mode, found["tmp"].uid) == (0o1777, 0)
    owned = {path for path, entry in found.items() if entry.uid == 1000}
    assert {"var/lib/agentbox", "workspace", "run", "var/run", "var/log"} <= owned


def test_certificates_become_one_bundle(tree: Tree, make_deb: Callable[..., Path]) -> None:
    """Sorted by name, each ending in a newline, under both names and where OpenSSL reads them."""
    inside = "./usr/share/ca-certificates/mozilla"
    add_package(
        tree,
        "ca-certificates",
        make_deb("ca", {f"{inside}/b.crt": b"B", f"{inside}/a.crt": b"A\n\n"}),
    )
    add_certificates(tree)
    assert tree.disk_path("etc/ssl/certs/ca-certificates.crt").read_bytes() == b"A\nB\n"
    links = {entry.path: entry.target for entry in tree.entries if entry.type == "link"}
    assert links == {
        "etc/ssl/certs/ca-bundle.crt": "ca-certificates.crt",
        "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
    }


def test_no_certificates_no_bundle(tree: Tree) -> None:
    """A layer without certificates gets no empty bundle, which would break every TLS client."""
    add_certificates(tree)
    assert tree.entries == []


@pytest.mark.parametrize("damage", [b"", b"hello", b"!<arch>\n"])
def test_what_is_no_package_is_refused(tmp_path: Path, damage: bytes) -> None:
    """A sentence with the file's name, never a traceback."""
    file = tmp_path / "x_1_all.deb"
    file.write_bytes(damage)
    with pytest.raises(AgentboxError, match=r"cannot read x_1_all\.deb"):
        deb.control(file)

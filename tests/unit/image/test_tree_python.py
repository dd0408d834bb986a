"""Wheels, byte code and the package itself, as the image's Python finds them."""

import base64
import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentbox import __version__
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.image.tree.application import add_application, version_of
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.listing import add_listing
from agentbox.host.image.tree.pyc import add_bytecode
from agentbox.host.image.tree.wheel import add_environment, add_wheel

SITE = "opt/agentbox/venv/lib/python3.13/site-packages"
UNCHECKED = b"\x01\x00\x00\x00"  # flags of PEP 552: hash-based, source not looked at


def test_a_wheel_is_installed(tree: Tree, make_wheel: Callable[..., Path]) -> None:
    """Modules, final shebang, RECORD and INSTALLER; nothing has the path of the build."""
    add_wheel(
        tree,
        "thing",
        make_wheel("thing", {"thing/__init__.py": "x = 1\n"}, scripts="thing = thing:x"),
        "3.13",
    )
    script = tree.disk_path("opt/agentbox/venv/bin/thing").read_text()
    assert script.startswith("#!/opt/agentbox/venv/bin/python\n")
    assert tree.disk_path(f"{SITE}/thing/__init__.py").read_text() == "x = 1\n"
    assert tree.disk_path(f"{SITE}/thing-1.0.dist-info/INSTALLER").read_bytes() == b"agentbox"
    record = tree.disk_path(f"{SITE}/thing-1.0.dist-info/RECORD").read_text()
    assert "../../../bin/thing,sha256=" in record
    assert "direct_url.json" not in record
    assert {entry.owner for entry in tree.entries if entry.type == "file"} == {"wheel:thing"}


def test_a_bare_wheel_has_no_test_suite(tree: Tree, make_wheel: Callable[..., Path]) -> None:
    """Directories named tests are left out, at any depth; a module of that name stays."""
    suites = ("thing/tests/test_a.py", "thing/deep/tests/data/tests/b.py")
    files = {
        "thing/__init__.py": "",
        "thing/tests.py": "",
        "thing/deep/c.py": "",
        **dict.fromkeys(suites, ""),
    }
    add_wheel(tree, "thing", make_wheel("thing", files), "3.13", without_tests=True)
    there = {entry.path.removeprefix(f"{SITE}/") for entry in tree.entries if entry.type == "file"}
    assert {"thing/__init__.py", "thing/tests.py", "thing/deep/c.py"} <= there
    assert not there & set(suites)


def test_two_wheels_may_not_fill_one_path(tree: Tree, make_wheel: Callable[..., Path]) -> None:
    """The second is refused by name."""
    add_wheel(tree, "one", make_wheel("one", {"shared.py": "a = 1\n"}), "3.13")
    with pytest.raises(AgentboxError, match=r"shared\.py.*wheel:one.*wheel:two"):
        add_wheel(tree, "two", make_wheel("two", {"shared.py": "a = 2\n"}), "3.13")


def test_byte_code_follows_the_source_only(tmp_path: Path) -> None:
    """Equal sources produce equal byte code, valid whatever the time stamps, with final paths,
    owned as the source is."""
    found = []
    for folder in ("one", "two"):
        tree = Tree(tmp_path / folder)
        tree.file(f"{SITE}/m.py", b"def f():\n    return {'a', 'b', 'c'}\n", "wheel:m")
        add_bytecode(tree, [sys.executable])
        entry = next(entry for entry in tree.entries if entry.path.endswith(".pyc"))
        found.append(tree.disk_path(entry.path).read_bytes())
        assert entry.owner == "wheel:m"
    assert found[0] == found[1]
    assert found[0][4:8] == UNCHECKED
    assert found[0][:4] == importlib.util.MAGIC_NUMBER
    assert f"/{SITE}/m.py".encode() in found[0]
    assert str(tmp_path).encode() not in found[0]


def test_source_that_does_not_compile_is_named(tree: Tree) -> None:
    """The owner and the line, not a missing file later."""
    tree.file(f"{SITE}/bad.py", b"def (:\n", "wheel:bad")
    with pytest.raises(AgentboxError, match=r"cannot compile wheel:bad: .*bad\.py"):
        add_bytecode(tree, [sys.executable])


def test_scripts_elsewhere_are_not_compiled(tree: Tree) -> None:
    """Only modules that the interpreter imports get byte code."""
    tree.file("usr/share/doc/x/example.py", b"1\n", "deb:x")
    add_bytecode(tree, [sys.executable])
    assert not [entry for entry in tree.entries if entry.path.endswith(".pyc")]


def test_the_package_is_complete(tree: Tree) -> None:
    """Modules, data, passwd, entry point and metadata of this checkout, each file with its digest in RECORD."""
    add_application(tree, CHECKOUT, "3.13")
    info = f"{SITE}/agentbox-{__version__}.dist-info"
    assert (
        tree.disk_path("opt/agentbox/venv/bin/agentbox-ctl")
        .read_text()
        .startswith("#!/opt/agentbox/venv/bin/python\n")
    )
    assert f"Version: {__version__}\n" in tree.disk_path(f"{info}/METADATA").read_text()
    assert "agentbox:x:1000:1000:" in tree.disk_path("etc/passwd").read_text()
    for path in (f"{SITE}/agentbox/box/boot/__main__.py", "opt/agentbox/share/config/features/core.toml", "opt/agentbox/share/config/denials.toml",
                 "opt/agentbox/share/schema/agentbox.schema.json", "etc/profile.d/agentbox-runtime.sh"):  # fmt: skip
        assert tree.has(path), path
    rows = dict(
        line.rsplit(",", 2)[:2]
        for line in tree.disk_path(f"{info}/RECORD").read_text().splitlines()
    )
    module = tree.disk_path(f"{SITE}/agentbox/core/errors.py").read_bytes()
    expected = base64.urlsafe_b64encode(hashlib.sha256(module).digest()).rstrip(b"=").decode()
    assert rows["agentbox/core/errors.py"] == f"sha256={expected}"
    assert not [entry.path for entry in tree.entries if "__pycache__" in entry.path]


def test_the_version_is_read_without_running(tmp_path: Path) -> None:
    """It must be a plain assignment."""
    assert version_of(CHECKOUT) == __version__
    (tmp_path / "agentbox").mkdir()
    (tmp_path / "agentbox/__init__.py").write_text("version = 1\n")
    with pytest.raises(AgentboxError, match="__version__"):
        version_of(tmp_path)


def test_the_environment_is_the_images_python(tree: Tree) -> None:
    """A link to the interpreter and the file that makes it a virtual environment."""
    add_environment(tree, "3.13", "3.13.5-2")
    link = next(entry for entry in tree.entries if entry.path == "opt/agentbox/venv/bin/python")
    assert link.target == "/usr/bin/python3.13"
    assert "home = /usr/bin\n" in tree.disk_path("opt/agentbox/venv/pyvenv.cfg").read_text()


def test_the_listing_counts_what_boot_counts(tree: Tree) -> None:
    """Files and bytes by owner; links, directories and the listing itself are not in it."""
    import json

    tree.file("usr/bin/a", b"12345", "deb:a")
    tree.file("usr/bin/b", b"1", "deb:a")
    tree.link("usr/bin/c", "a", "deb:a")
    add_listing(tree, "base")
    listing = json.loads(tree.disk_path("opt/agentbox/share/files/base.json").read_bytes())
    assert listing["packages"] == {
        "deb:a": {"count": 2, "size": 6, "files": {"/usr/bin/a": 5, "/usr/bin/b": 1}}
    }

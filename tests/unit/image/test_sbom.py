"""The bill lists what the lock put into the image, the same bytes each time, and every file has its owner."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from small_images import PLAN

from agentbox.host.image.check.file_owners import unaccounted_files
from agentbox.host.image.check.layers import ImageRoot
from agentbox.host.image.sbom import licenses
from agentbox.host.image.sbom.cyclonedx import make_bom, purl, to_text
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import write_entries

DEP5 = (
    b"Format: x\n\nFiles: *\nCopyright: someone\nLicense: GPL-2+\n\nFiles: debian/*\nLicense: MIT\n"
)


@pytest.fixture
def spec(
    make_deb: Callable[..., Path], make_wheel: Callable[..., Path], tmp_path: Path
) -> dict[str, Any]:
    """One package of each kind."""
    described = json.dumps({"name": "@scope/x", "license": "ISC"}).encode()
    npm = tmp_path / "x-3.0.tgz"
    with tarfile.open(npm, "w:gz") as tar:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(described)
        tar.addfile(info, io.BytesIO(described))
    deb = make_deb("git", {"./usr/share/doc/git/copyright": DEP5})
    wheel = make_wheel(
        "thing", {"thing.py": ""}, metadata="License-Expression: MIT OR Apache-2.0\n"
    )

    def row(name: str, path: Path, version: str = "1:2.0") -> dict[str, Any]:
        return {
            "name": name,
            "version": version,
            "path": str(path),
            "file": path.name,
            "sha256": "a" * 64,
            "features": ["core"],
        }

    return {
        "arch": "amd64", "suite": "trixie", "deb": [row("git", deb)], "wheel": [row("thing", wheel, "1.0")],
        "npm": [row("@scope/x", npm, "3.0")],
    }  # fmt: skip


def text_of(spec: dict[str, Any], digest: str = "sha256:1") -> str:
    return to_text(make_bom(spec, PLAN, digest))


def test_the_bill_is_valid_and_complete(spec: dict[str, Any]) -> None:
    """CycloneDX 1.6 accepts it; one component a row with purl, SHA-256, licence and features."""
    text = text_of(spec)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = {each["purl"]: each for each in json.loads(text)["components"]}
    assert set(found) == {
        "pkg:deb/debian/git@1:2.0?arch=amd64&distro=trixie", "pkg:pypi/thing@1.0", "pkg:npm/%40scope/x@3.0",
    }  # fmt: skip
    thing = found["pkg:pypi/thing@1.0"]
    assert thing["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    assert thing["licenses"] == [{"license": {"name": "MIT OR Apache-2.0"}}]
    assert {"name": "agentbox:features", "value": "core"} in thing["properties"]
    assert found["pkg:npm/%40scope/x@3.0"]["licenses"] == [{"license": {"name": "ISC"}}]


def test_the_bill_is_a_function_of_its_input(spec: dict[str, Any]) -> None:
    """Same plan: same bytes, whatever the order of rows. Another plan: another serial."""
    assert text_of(spec) == text_of(spec)
    one, two = json.loads(text_of(spec)), json.loads(text_of(spec, "sha256:2"))
    assert one["serialNumber"] != two["serialNumber"]
    assert one["components"] == two["components"]
    assert one["metadata"]["timestamp"].startswith("1970-01-01T00:00:00")


def test_what_a_package_states_is_taken(
    spec: dict[str, Any], make_wheel: Callable[..., Path]
) -> None:
    """The paragraph `Files: *` of a deb; a wheel's field unless it is a complete text; else nothing
    is invented."""
    assert licenses.deb_license(Path(spec["deb"][0]["path"]), "git") == "GPL-2+"
    assert licenses.deb_license(Path(spec["deb"][0]["path"]), "other") == ""
    assert licenses.wheel_license(make_wheel("bare", {"bare.py": ""})) == ""
    assert (
        licenses.wheel_license(
            make_wheel("long", {"long.py": ""}, metadata=f"License: {'x' * 200}\n")
        )
        == ""
    )


def test_names_are_spelled_as_their_world_does() -> None:
    """PyPI names are lower case with hyphens, npm scopes are namespaces."""
    row = {"name": "Foo_Bar", "version": "1"}
    assert purl("wheel", row, arch="amd64", suite="trixie").to_string() == "pkg:pypi/foo-bar@1"


def checked(tree: Tree, tmp_path: Path, owners: list[str]) -> list[str]:
    listed, bill = tmp_path / "l.json", tmp_path / "b.json"
    write_entries(tree.entries, listed)
    rows = [
        {"bom-ref": owner, "properties": [{"name": "agentbox:owner", "value": owner}]}
        for owner in owners
    ]
    bill.write_text(json.dumps({"components": rows}))
    return unaccounted_files(
        ImageRoot.of([{"name": "base", "tree": str(tree.root), "listed": str(listed)}]), bill
    )


def test_every_file_has_one_owner_and_every_owner_a_file(tree: Tree, tmp_path: Path) -> None:
    """A planted file, a component without files and an unknown kind of generated file are each named."""
    tree.file("usr/bin/git", b"", "deb:git")
    tree.file("opt/x.py", b"", "source:agentbox")
    tree.link("bin", "usr/bin", "generated:skeleton")
    assert checked(tree, tmp_path, ["deb:git"]) == []
    assert checked(tree, tmp_path, ["deb:git", "deb:curl"]) == [
        "deb:curl: in the bill of materials, but it owns no file"
    ]
    tree.file("usr/bin/planted", b"", "")
    tree.file("etc/made", b"", "generated:unknown")
    assert checked(tree, tmp_path, ["deb:git"]) == [
        "layer base, etc/made: no known owner (generated:unknown)",
        "layer base, usr/bin/planted: no known owner (none stated)",
    ]

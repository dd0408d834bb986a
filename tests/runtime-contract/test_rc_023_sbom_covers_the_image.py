"""RC-023: the bill of materials covers the image: each file has one owner, a planted file fails, the document is valid,
its package URLs are the lock's."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import locked_packages
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.check.file_owners import unaccounted_files
from agentbox.host.image.check.layers import ImageRoot, PlacedEntry
from agentbox.host.image.flake_reference import flake_reference
from agentbox.host.image.nix import read_nix, run_nix
from agentbox.host.image.sbom.cyclonedx import purl
from agentbox.host.image.tree.entry import TreeEntry
from agentbox.host.packages.lock_inputs import host_system
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM
from agentbox.plan.lockfile.reader import parse_lock

LOCK = CHECKOUT / "agentbox.lock"


@pytest.fixture(scope="module")
def described() -> Iterator[dict[str, Any]]:
    """The layers and the bill of the image of this checkout, built, with its own check passed."""
    locked_packages.bring()
    with flake_reference(CHECKOUT, CHECKOUT / "agentbox.toml", LOCK) as flake:
        run_nix(["build", f"{flake}#checks.{host_system()}.sbom", "--no-link"])
        yield json.loads(
            read_nix(["eval", "--json", f"{flake}#legacyPackages.{host_system()}.described"])
        )


def test_rc_023_every_file_has_one_owner(described: dict[str, Any]) -> None:
    """Of thousands of files none is without owner, and every component of the bill has files."""
    root = ImageRoot.of(described["layers"])
    assert len(root.files) > 5000
    assert unaccounted_files(root, Path(described["sbom"])) == []


@pytest.mark.parametrize("owner", ["", "deb:unknown", "generated:by-hand"])
def test_rc_023_a_planted_file_fails(described: dict[str, Any], owner: str) -> None:
    """A file that the lock does not explain is named with its layer."""
    root = ImageRoot.of(described["layers"])
    entry = TreeEntry(path="usr/bin/planted", type="file", mode=0o755, owner=owner)
    planted = ImageRoot([*root.entries, PlacedEntry(entry, "base", Path("/"))])
    found = unaccounted_files(planted, Path(described["sbom"]))
    assert len(found) == 1
    assert found[0].startswith("layer base, usr/bin/planted: no known owner")


def test_rc_023_a_file_with_two_owners_fails(described: dict[str, Any]) -> None:
    """A path in two layers is named with both."""
    root = ImageRoot.of(described["layers"])
    twice = next(each for each in root.files if each.layer == "base")
    found = unaccounted_files(
        ImageRoot([*root.entries, PlacedEntry(twice.entry, "app", twice.root)]),
        Path(described["sbom"]),
    )
    assert len(found) == 1
    assert found[0].startswith(f"{twice.entry.path}: owned by")


def test_rc_023_the_document_is_valid_and_is_the_lock(described: dict[str, Any]) -> None:
    """CycloneDX 1.6 accepts it; its package URLs and digests are those of the lock's rows, less what only builds use."""
    text = Path(described["sbom"]).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = {each["purl"]: each["hashes"][0]["content"] for each in json.loads(text)["components"]}
    lock, arch = parse_lock(LOCK), ARCH_OF_SYSTEM[host_system()]
    rows = [("deb", row) for row in lock.debian[arch]]
    rows += [("wheel", row) for row in lock.wheels if arch in row.arch]
    expected = {
        purl(kind, asdict(row), arch=arch, suite=lock.suite).to_string(): row.sha256
        for kind, row in rows
        if set(row.features) != {"build"}
    }
    assert len(expected) > 100
    assert found == expected

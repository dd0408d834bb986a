"""The build tools: extracted from Debian packages and hashed like Nix, without Nix."""

import os
import subprocess
from pathlib import Path

import pytest

from agentbox.core.canonical import file_sha256
from agentbox.host.packages.apt.deb import ar_members, extract
from agentbox.host.packages.errors import FetchError
from agentbox.host.packages.store import nix_store
from agentbox.host.packages.store.build_tools import unpacked_seed
from agentbox.host.packages.store.nar import nar_sha256
from agentbox.plan.lockfile.model import BuildTools, LockEntry


def deb(folder: Path, name: str, files: dict[str, bytes], compression: str) -> Path:
    """A package built by dpkg-deb."""
    root = folder / name
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: t\nDescription: t\n"
    )
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    made = folder / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", f"-Z{compression}", "--build", str(root), str(made)],
        check=True,
        capture_output=True,
    )
    return made


@pytest.mark.parametrize("compression", ["xz", "gzip", "none"])
def test_reads_what_dpkg_writes(tmp_path: Path, compression: str) -> None:
    """A file is extracted from a package of each compression, byte for byte."""
    made = deb(tmp_path, "busybox-static", {"usr/bin/busybox": b"\0tool" * 999}, compression)
    assert extract(made, ["busybox"]) == {"busybox": b"\0tool" * 999}


def test_says_what_is_wrong_with_a_package(tmp_path: Path) -> None:
    """A file that is no archive, a truncated one and one without the member are rejected by
    name.
    """
    made = deb(tmp_path, "other", {"usr/bin/other": b"x"}, "xz")
    with pytest.raises(FetchError, match=r"other.deb: it has no busybox"):
        extract(made, ["busybox"])
    whole = made.read_bytes()
    for data, why in (
        (b"no", "not an ar archive"),
        (whole[:-9], "is truncated"),
        (whole[:70], "invalid ar header|is truncated|no data"),
    ):
        made.write_bytes(data)
        with pytest.raises(FetchError, match=why):
            extract(made, ["other"])
    with pytest.raises(ValueError, match="not an ar archive"):
        list(ar_members(b"PK"))


def test_seed_folder_is_what_nix_stores(tmp_path: Path) -> None:
    """The directory has two executables; its NAR hash and store path equal those of Nix."""
    debs = {
        "busybox-static": deb(tmp_path, "busybox-static", {"usr/bin/busybox": b"box"}, "xz"),
        "bash-static": deb(tmp_path, "bash-static", {"usr/bin/bash-static": b"shell"}, "xz"),
    }
    with unpacked_seed(debs) as folder:
        assert (folder / "bin/bash").read_bytes() == b"shell"
        assert (folder / "bin/busybox").stat().st_mode & 0o777 == 0o555
        (folder / "link").symlink_to("bin/bash")
        nar = nar_sha256(folder)
        command = ["nix", "hash", "path", "--base16", str(folder)]
        asked = subprocess.run(
            command, env=nix_store.nix_environment(), capture_output=True, text=True, check=True
        )
        assert nar == f"sha256:{asked.stdout.strip()}"
        added = nix_store.add_directory(folder, "busybox")
    assert added == nix_store.recursive_path(BuildTools(files=(), nar=nar), "busybox")


def test_files_lie_where_nix_looks(tmp_path: Path) -> None:
    """The store path is known before a file is added; adding it, even twice, makes exactly that
    path valid.
    """
    path = tmp_path / "some"
    path.write_bytes(os.urandom(32))  # A path of an earlier run may still be valid.
    entry = LockEntry(
        name="a", version="1", file="a+b_1.deb", size=path.stat().st_size, sha256=file_sha256(path)
    )
    place = nix_store.flat_path(entry)
    assert nix_store.valid_paths([place]) == frozenset()
    nix_store.add_files([(entry, path)])
    nix_store.add_files([(entry, path)])
    assert nix_store.valid_paths([place]) == {place}
    assert Path(place).read_bytes() == path.read_bytes()


def test_roots_hold_exactly_what_is_asked(tmp_path: Path) -> None:
    """The links of a root directory are those of the last call."""
    places = []
    for name in ("one", "two"):
        path = tmp_path / name
        path.write_bytes(os.urandom(32))
        entry = LockEntry(
            name=name, version="1", file=name, size=path.stat().st_size, sha256=file_sha256(path)
        )
        nix_store.add_files([(entry, path)])
        places.append(nix_store.flat_path(entry))
    roots = tmp_path / "roots"
    nix_store.root_paths(roots, places)
    assert {str(link.readlink()) for link in roots.iterdir()} == set(places)
    nix_store.root_paths(roots, places[1:])
    assert {str(link.readlink()) for link in roots.iterdir()} == set(places[1:])
    command = ["nix-store", "--query", "--roots", places[1]]
    found = subprocess.run(
        command, env=nix_store.nix_environment(), capture_output=True, text=True, check=True
    ).stdout
    assert str(roots) in found

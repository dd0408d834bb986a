"""RC-022: the image is reproducible: every derivation built again is equal, two stores produce one
digest, a planted change is named by its path."""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import locked_packages
import pytest
from sampling import OneOfEach

from agentbox.core.paths import CHECKOUT
from agentbox.core.progress import NullProgress
from agentbox.host.image.archive import BuildResult, blob_name, read_archive
from agentbox.host.image.flake_reference import copy_sources, flake_reference
from agentbox.host.image.nix import read_nix, run_nix
from agentbox.host.image.nix_build import build
from agentbox.host.image.oci.layer import CompressedWriter
from agentbox.host.image.verify.members import Archive
from agentbox.host.image.verify.rebuild import rebuild_differences, step_names
from agentbox.host.image.verify.steps import compare_archives, lock_rows
from agentbox.host.packages.lock_inputs import host_system
from agentbox.host.packages.store.nix_store import flat_path, nix_environment, recursive_path
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM
from agentbox.plan.lockfile.reader import parse_lock

LOCK = CHECKOUT / "agentbox.lock"
SEAL = "opt/agentbox/venv/lib/python3.13/site-packages/agentbox/box/seal/main.py"


@pytest.fixture(scope="module")
def flake() -> Iterator[str]:
    """The flake of this checkout, with every locked file in the store."""
    locked_packages.bring()
    with flake_reference(CHECKOUT, CHECKOUT / "agentbox.toml", LOCK) as reference:
        yield reference


@pytest.fixture(scope="module")
def built(flake: str, tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    """The image of this checkout."""
    return build(CHECKOUT, out_link=tmp_path_factory.mktemp("built") / "image")


def test_rc_022_every_derivation_is_rebuilt_equal(flake: str, one_of_each: OneOfEach) -> None:
    """Plan, bill of materials, trees, layers and archive are equal a second time: without --full
    one tree and one layer of them."""
    names = step_names(flake, host_system())
    assert {"plan", "sbom", "image", "tree-base", "layer-base", "tree-app", "layer-app"} <= set(
        names
    )
    assert (
        list(
            rebuild_differences(
                flake, host_system(), NullProgress(), selected=one_of_each(names, _kind)
            )
        )
        == []
    )


def _kind(step: str) -> str:
    return step.partition("-")[0]


def test_rc_022_two_stores_give_one_digest(
    flake: str, built: BuildResult, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A store that has only the locked files builds the same bytes: its own Python, the plan and the
    layer of this manifest; with --full the image."""
    lock, system = parse_lock(LOCK), host_system()
    every = request.config.getoption("--full")
    step = "image" if every else "layer-config"
    seed = recursive_path(lock.seed[ARCH_OF_SYSTEM[system]], "busybox")
    locked = [seed, *(flat_path(row) for row in lock_rows(lock, system))]
    store = tmp_path / "store"
    copied = subprocess.run(
        ["nix", "copy", "--no-check-sigs", "--to", str(store), *locked],
        env=nix_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert copied.returncode == 0, copied.stderr
    target = f"{flake}#legacyPackages.{system}.steps.{step}"
    made = run_nix(["build", target, "--no-link", "--store", str(store)])
    assert {"buildpython", "plan", "sbom", "tree-config", "layer-config"} <= set(made)
    one, two = (_nar_hash(target, *where) for where in ((), ("--store", str(store))))
    assert one == two
    if every:
        assert {"tree-base", "layer-base"} <= set(made)
        other = read_archive(Path(f"{store}{built.path}"))
        assert other.manifest_digest == built.manifest_digest
    _remove(store)


def _nar_hash(target: str, *where: str) -> str:
    """Of what the target is in a store."""
    (found,) = json.loads(read_nix(["path-info", "--json", target, *where]))
    return str(found["narHash"])


def _remove(store: Path) -> None:
    """Store directories are read-only, even for their owner."""
    for folder in store.rglob("*"):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    shutil.rmtree(store)


def test_rc_022_a_derivation_that_is_not_deterministic_is_named(flake: str, tmp_path: Path) -> None:
    """A build step that writes random bytes: the rebuild names the derivation and the path."""
    copy_sources(CHECKOUT, tmp_path)
    step = tmp_path / "agentbox/host/image/tree/listing.py"
    text = step.read_text()
    planted = text.replace(
        '"schema": 1', '"schema": 1, "planted": __import__("os").urandom(8).hex()'
    )
    assert planted != text
    step.write_text(planted)
    found = list(
        rebuild_differences(
            f"path:{tmp_path}", host_system(), NullProgress(), selected=("tree-config",)
        )
    )
    assert [(each.location, each.path, each.attribute) for each in found] == [
        ("tree-config", "opt/agentbox/share/files/config.json", "sha256")
    ]


def test_rc_022_a_planted_change_is_named_by_its_path(built: BuildResult, tmp_path: Path) -> None:
    """One byte in one file of one layer of an image: verification names layer, path and both digests."""
    changed = _with_one_byte_more(built, tmp_path / "changed.tar")
    original = Archive(built.path)
    step = compare_archives(original, changed)
    assert step.outcome == "different"
    assert step.said.startswith(f"layer app, {SEAL}: size ")
    assert compare_archives(original, built.path).outcome == "same"


def _with_one_byte_more(built: BuildResult, out: Path) -> Path:
    """A copy of the archive in docker's form whose layer app has a longer seal.py."""
    layer = next(each for each in built.layers if each.name == "app")
    with tarfile.open(built.path) as tar:
        members = {info.name: (tar.extractfile(info) or io.BytesIO()).read() for info in tar}
    plain, packed = io.BytesIO(), io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(members[blob_name(layer.digest)])) as old,
        tarfile.open(fileobj=plain, mode="w") as new,
    ):
        for info in old:
            stream = old.extractfile(info) if info.isreg() else None
            data = stream.read() if stream else b""
            if info.name == SEAL:
                data += b"\n"
                info.size = len(data)
            new.addfile(info, io.BytesIO(data) if info.isreg() else None)
    sink = CompressedWriter(packed)
    sink.write(plain.getvalue())
    sink.finish()
    docker = json.loads(members["manifest.json"])
    config = json.loads(members[docker[0]["Config"]])
    config["rootfs"]["diff_ids"] = [
        f"sha256:{sink.tar_hash.hexdigest()}" if each == layer.diff_id else each
        for each in config["rootfs"]["diff_ids"]
    ]
    members[blob_name(layer.digest)] = packed.getvalue()
    members[docker[0]["Config"]] = json.dumps(config).encode()
    with tarfile.open(out, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out

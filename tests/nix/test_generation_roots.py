"""The archive of a generation's image in a real Nix store: kept while the generation is, and no
longer.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from agentbox.core.canonical import canonical_json, digest
from agentbox.host.engines.state import BoxState
from agentbox.host.generations.image_root import archive_of, keep_archive
from agentbox.host.generations.record import Generation
from agentbox.host.generations.store import GenerationStore
from agentbox.host.image.archive import blob_name, read_archive
from agentbox.host.packages.store.nix_store import nix_environment


def archive(file: Path) -> str:
    """Writes an image archive without layers, like no other; returns the id of the image."""
    labels = {
        "org.agentbox.plan-digest": uuid4().hex,
        "org.agentbox.closure-digest": "",
        "org.agentbox.test-hooks": "",
    }
    config = {"config": {"Labels": labels}, "rootfs": {"diff_ids": []}, "history": []}
    manifest = {"config": {"digest": digest(canonical_json(config))}, "layers": []}
    blobs = [canonical_json(one) for one in (config, manifest)]
    index = {"manifests": [{"digest": digest(blobs[1])}]}
    members = {
        "index.json": canonical_json(index),
        "manifest.json": canonical_json([{"RepoTags": ["agentbox:test"]}]),
        **{blob_name(digest(blob)): blob for blob in blobs},
    }
    with tarfile.open(file, "w") as tar:
        for name, data in members.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    return str(manifest["config"]["digest"])


def nix_store(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["nix-store", *words],
        env=nix_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def built(tmp_path: Path) -> Iterator[tuple[GenerationStore, Generation, Path]]:
    """A box whose last build is in the store, and its first generation."""
    store = GenerationStore(BoxState(tmp_path / "box"))
    image = archive(tmp_path / "image.tar")
    path = Path(nix_store("--add", str(tmp_path / "image.tar")).stdout.strip())
    store.directory.mkdir(parents=True)
    (store.state.directory / "image").symlink_to(path)
    first = Generation(number=1, engine="docker", image_id=image, verdict="good")
    store.save(first, current=True)
    yield store, first, path
    store.forget()
    if path.exists():
        assert nix_store("--delete", str(path)).returncode == 0


def test_an_archive_lives_as_long_as_its_generation(
    built: tuple[GenerationStore, Generation, Path],
) -> None:
    """Also of a second generation with the same image, once the build is another; then it can be
    collected.
    """
    store, first, path = built
    keep_archive(store, first)
    (store.state.directory / "image").unlink()
    assert archive_of(store, first) == path
    assert nix_store("--delete", str(path)).returncode != 0
    second = Generation(number=2, engine="docker", image_id=first.image_id)
    store.save(second, current=True)
    keep_archive(store, second)
    store.remove(1)
    assert nix_store("--delete", str(path)).returncode != 0
    assert read_archive(path).image_id == second.image_id
    store.forget()
    assert nix_store("--delete", str(path)).returncode == 0
    assert not path.exists()


def test_the_archive_of_another_image_is_not_kept(
    built: tuple[GenerationStore, Generation, Path],
) -> None:
    """The last build may be newer than what runs; an image of a registry has no archive."""
    store, first, _path = built
    other = Generation(number=2, engine="docker", image_id="sha256:" + "0" * 64)
    store.save(other)
    keep_archive(store, other)
    assert archive_of(store, other) is None
    assert archive_of(store, first) is None

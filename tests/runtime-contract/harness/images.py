"""The two images that the contract runs: as shipped, and with test hooks. Built once a session by the product itself."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import locked_packages

from agentbox.core.paths import CHECKOUT
from agentbox.core.progress import NullProgress
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.docker.docker_cli import docker
from agentbox.host.image.archive import BuildResult
from agentbox.host.image.nix_build import build
from harness.outcomes import MANIFEST
from harness.overlay import BOX, Records

REPOSITORY = (
    "agentbox-runtime-contract"  # `up` of another suite removes no image that has a second name
)
CANARY = (
    "canary-5f2d9c71a0b34e68"  # in the environment of the build; RC-021 looks for it in the layers
)


@dataclass(frozen=True)
class Images:
    """Loaded images of the contract's manifest."""

    plain: BuildResult
    hooks: BuildResult

    def records(self, image: BuildResult) -> Records:
        """What the image's layers record about their files."""
        return _records(image.image_id)


@contextmanager
def built_images(folder: Path) -> Iterator[Images]:
    """Both, with a second name as long as the context lasts."""
    images = build_images(folder)
    names = {f"{REPOSITORY}:{name}": getattr(images, name).image_id for name in ("plain", "hooks")}
    try:
        for name, image_id in names.items():
            _docker("tag", image_id, name)
        yield images
    finally:
        _docker("image", "rm", *names)


def build_images(folder: Path) -> Images:
    """Fetches what the lock names, builds both images and loads them."""
    manifest = folder / "agentbox.toml"
    manifest.write_text(MANIFEST)
    os.environ["AGENTBOX_API_TOKEN"] = CANARY
    try:
        locked_packages.bring()
        return Images(*(_built(manifest, folder, hooks=hooks) for hooks in (False, True)))
    finally:
        del os.environ["AGENTBOX_API_TOKEN"]


def _built(manifest: Path, folder: Path, *, hooks: bool) -> BuildResult:
    link = folder / f"image-{hooks}"
    result = build(
        CHECKOUT, manifest=manifest, test_hooks=hooks, progress=NullProgress(), out_link=link
    )
    engine = DockerEngine()
    if not engine.has_image(result.image_id):
        before = docker(
            ["images", "--quiet", "--no-trunc", result.tag],
            doing="look for the image of an earlier run",
        ).split()
        engine.load(result.path)
        if (
            before
        ):  # no one needs it: boxes of the contract are removed, and one run is active at a time
            docker(["image", "rm", *before], doing="remove the image of an earlier run")
    return result


@cache
def _records(image_id: str) -> Records:
    """Copied out of a container that never runs."""
    container = _docker("create", image_id).decode().strip()
    try:
        packed = _docker("cp", f"{container}:{BOX.layer_files}", "-")
    finally:
        _docker("rm", container)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {Path(info.name).name: tar.extractfile(info) for info in tar if info.isfile()}
        return {
            name: json.loads(stream.read()) for name, stream in files.items() if stream is not None
        }


def _docker(*words: str) -> bytes:
    return subprocess.run(["docker", *words], capture_output=True, check=True).stdout

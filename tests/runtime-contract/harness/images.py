"""The two images that the contract runs: as shipped, and with test hooks. Built once a session by the product itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentbox.engine.docker import Docker
from agentbox.image import BuildResult, build
from agentbox.lock import fetch_all
from agentbox.lockfile import read
from agentbox.progress import NullProgress
from agentbox.settings import CHECKOUT, HostPaths
from harness.box import MANIFEST


@dataclass(frozen=True)
class Images:
    """Loaded images of the contract's manifest."""

    plain: BuildResult
    hooks: BuildResult


def build_images(folder: Path) -> Images:
    """Fetches what the lock names, builds both images and loads them."""
    manifest = folder / "agentbox.toml"
    manifest.write_text(MANIFEST)
    fetch_all(read(CHECKOUT / "agentbox.lock"), cache=HostPaths.of_this_user().cache, progress=NullProgress())
    made = {}
    for hooks in (False, True):
        result = build(
            CHECKOUT, manifest=manifest, test_hooks=hooks, progress=NullProgress(), out_link=folder / f"image-{hooks}"
        )
        docker = Docker()
        if not docker.has_image(result.image_id):
            docker.load(result.path)
        made[hooks] = result
    return Images(made[False], made[True])

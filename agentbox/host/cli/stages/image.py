"""Stage 6: builds and loads the image, or reuses the one with the same inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.canonical import canonical_json, digest, file_sha256
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.state import BuildStamp
from agentbox.host.uninstall.inventory import Inventory

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest
    from agentbox.plan.model import Plan

_SOURCES = ("agentbox", "config", "nix", "schema", "flake.nix", "flake.lock", "pyproject.toml")


@dataclass(frozen=True)
class PreparedImage:
    """The image of a box, and a summary of what was done."""

    stamp: BuildStamp
    summary: str


def build_key(manifest: Manifest, lock: Path, *, test_hooks: bool) -> str:
    """Digest of the inputs of an image: rebuild-class keys, lock and all source files."""
    from agentbox.manifest.keys import apply_classes, effective_values

    classes = apply_classes()
    keys = {
        key: value
        for key, value in effective_values(manifest).items()
        if classes.get(key) == "rebuild"
    }
    parts = {
        "keys": keys,
        "lock": file_sha256(lock),
        "sources": source_digest(),
        "test_hooks": test_hooks,
    }
    return digest(canonical_json(parts))


def source_digest() -> str:
    """Digest of all source files of an image."""
    return _digest_files(_tracked_files())


@cache
def running_source_digest() -> str:
    """Digest of the package and its data on disk, which a process-engine box runs."""
    return _digest_files(_files_below(("agentbox", "config", "schema")))


def _digest_files(names: Iterable[str]) -> str:
    return digest(canonical_json({name: file_sha256(CHECKOUT / name) for name in names}))


def plan_for(manifest: Manifest, lock: Path, *, test_hooks: bool) -> Plan:
    """Builds the plan of this manifest on this machine."""
    from agentbox.host.packages.lock_inputs import host_system, read_lock
    from agentbox.manifest.features.loader import load_features
    from agentbox.plan.build import build_plan

    return build_plan(
        manifest,
        load_features(),
        lock.read_bytes(),
        read_lock(lock),
        host_system(),
        test_hooks=test_hooks,
    )


def _tracked_files() -> list[str]:
    if not (CHECKOUT / ".git").exists():
        return _files_below(_SOURCES)
    listing = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--", *_SOURCES],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        raise AgentboxError(
            f"cannot read the sources of {CHECKOUT}: "
            f"{(listing.stderr.strip() or 'git failed').splitlines()[0]}",
            "Run agentbox as the owner of the checkout; Nix builds what git tracks.",
            exit_code=ExitCode.USAGE,
        )
    return [name for name in listing.stdout.split("\0") if name and (CHECKOUT / name).is_file()]


def _files_below(names: Sequence[str]) -> list[str]:
    files = [path for name in names for path in [CHECKOUT / name, *(CHECKOUT / name).rglob("*")]]
    return sorted(
        str(path.relative_to(CHECKOUT))
        for path in files
        if path.is_file() and path.suffix != ".pyc"
    )


def build_and_load(
    cli: CliContext,
    engine: DockerEngine,
    manifest: Manifest,
    *,
    force: bool,
    test_hooks: bool = False,
) -> PreparedImage:
    """Builds and loads the image unless the engine has one with the same inputs."""
    from agentbox.host.image.nix_build import build
    from agentbox.host.packages.lock_inputs import own_skills

    state = cli.state()
    key = build_key(manifest, cli.lock, test_hooks=test_hooks)
    previous = state.build_stamp()
    if (
        previous is not None
        and previous.key == key
        and not force
        and engine.has_image(previous.image_id)
    ):
        return PreparedImage(previous, "unchanged")
    progress = cli.out.progress()
    result = build(
        CHECKOUT,
        manifest=cli.manifest,
        test_hooks=test_hooks,
        own_skills=own_skills(manifest),
        progress=progress,
        out_link=state.directory / "image",
    )
    if not engine.has_image(result.image_id):
        progress.stage("load into docker")
        Inventory.for_this_user().add("image", result.image_id)
        engine.load(result.path)
        progress.done()
    stamp = BuildStamp(
        key=key,
        image_id=result.image_id,
        manifest_digest=result.manifest_digest,
        tag=result.tag,
        plan_digest=result.plan_digest,
    )
    state.add_build(stamp)
    return PreparedImage(stamp, f"{stamp.tag} built and loaded")


def pull_image(
    cli: CliContext, manifest: Manifest, reference: str, *, test_hooks: bool
) -> PreparedImage:
    """The image of a registry, as `host.engines.docker.pulled` brings it. What a manifest needs
    built in is for the boot to find."""
    from agentbox.host.engines.docker.registry_image import ensure_image

    state = cli.state()
    previous = state.build_stamp()
    stamp = ensure_image(reference, plan_for(manifest, cli.lock, test_hooks=test_hooks))
    state.add_build(stamp)
    return PreparedImage(stamp, "unchanged" if stamp == previous else f"{reference} pulled")

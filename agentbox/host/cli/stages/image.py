"""Stages 4 to 6: lock, fetch, build and load; nothing is done twice for the same inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.canonical import canonical_json, digest, file_sha256
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import Cli
from agentbox.host.engines.docker.docker import Docker
from agentbox.host.engines.state import BuildStamp

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest
    from agentbox.plan.model import Plan

_SOURCES = ("agentbox", "config", "nix", "schema", "flake.nix", "flake.lock", "pyproject.toml")


@dataclass(frozen=True)
class Image:
    """The image a box is started from, and what was done for it, in words."""

    stamp: BuildStamp
    said: str


def build_key(manifest: Manifest, lock: Path, *, test_hooks: bool) -> str:
    """Digest of everything an image is made of: rebuild-class keys, lock, and every source file."""
    from agentbox.manifest.keys import apply_classes, effective_values

    classes = apply_classes()
    keys = {key: value for key, value in effective_values(manifest).items() if classes.get(key) == "rebuild"}
    parts = {"keys": keys, "lock": file_sha256(lock), "sources": source_digest(), "test_hooks": test_hooks}
    return digest(canonical_json(parts))


def source_digest() -> str:
    """Digest of every source file that an image is made of."""
    return _digest_of(_tracked())


def running_source_digest() -> str:
    """Digest of what a box on the plain host runs: the package and its data, as they lie there."""
    return _digest_of(_on_disk(("agentbox", "config", "schema")))


def _digest_of(names: Iterable[str]) -> str:
    return digest(canonical_json({name: file_sha256(CHECKOUT / name) for name in names}))


def plan_of(manifest: Manifest, lock: Path, *, test_hooks: bool) -> Plan:
    """The plan that this manifest means on this machine."""
    from agentbox.host.packages.wanted import host_system
    from agentbox.manifest.features.loader import load_features
    from agentbox.plan.build import make_plan
    from agentbox.plan.lockfile.reader import read

    return make_plan(manifest, load_features(), lock.read_bytes(), read(lock), host_system(), test_hooks=test_hooks)


def _tracked() -> list[str]:
    if not (CHECKOUT / ".git").exists():
        return _on_disk(_SOURCES)
    listed = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--", *_SOURCES], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        raise AgentboxError(
            f"cannot read the sources of {CHECKOUT}: {(listed.stderr.strip() or 'git failed').splitlines()[0]}",
            "Run agentbox as the owner of the checkout; Nix builds what git tracks.",
            exit_code=ExitCode.USAGE,
        )
    return [name for name in listed.stdout.split("\0") if name and (CHECKOUT / name).is_file()]


def _on_disk(names: Sequence[str]) -> list[str]:
    files = [path for name in names for path in [CHECKOUT / name, *(CHECKOUT / name).rglob("*")]]
    return sorted(str(path.relative_to(CHECKOUT)) for path in files if path.is_file() and path.suffix != ".pyc")


def build_and_load(cli: Cli, engine: Docker, manifest: Manifest, *, force: bool, test_hooks: bool = False) -> Image:
    """Builds and loads the image unless the engine still has the one made of the same inputs."""
    from agentbox.host.image.nixbuild import build

    state = cli.state()
    key = build_key(manifest, cli.lock, test_hooks=test_hooks)
    last = state.build_stamp()
    if last is not None and last.key == key and not force and engine.has_image(last.image_id):
        return Image(last, "unchanged")
    progress = cli.out.progress()
    result = build(
        CHECKOUT,
        manifest=cli.manifest,
        test_hooks=test_hooks,
        progress=progress,
        out_link=state.folder / "image",
    )
    if not engine.has_image(result.image_id):
        progress.stage("load into docker")
        engine.load(result.path)
        progress.done()
    stamp = BuildStamp(
        key=key,
        image_id=result.image_id,
        manifest_digest=result.manifest_digest,
        tag=result.tag,
        plan_digest=result.plan_digest,
    )
    state.remember_build(stamp)
    return Image(stamp, f"{stamp.tag} built and loaded")


def pull(cli: Cli, manifest: Manifest, reference: str, *, test_hooks: bool) -> Image:
    """The image of a registry, as `host.engines.docker.pulled` brings it. What a manifest needs built in is for the boot to find."""
    from agentbox.host.engines.docker.pulled import stamp_of

    state = cli.state()
    last = state.build_stamp()
    stamp = stamp_of(reference, plan_of(manifest, cli.lock, test_hooks=test_hooks))
    state.remember_build(stamp)
    return Image(stamp, "unchanged" if stamp == last else f"{reference} pulled")

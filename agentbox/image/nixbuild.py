"""Builds the image of a manifest with Nix."""

import platform
from pathlib import Path

from agentbox.errors import AgentboxError, ExitCode
from agentbox.image.archive import BuildResult, read_archive
from agentbox.image.flakeref import flake_of
from agentbox.image.nix import run_nix
from agentbox.progress import Progress


def build(
    checkout: Path,
    *,
    out_link: Path,
    system: str | None = None,
    manifest: Path | None = None,
    lock: Path | None = None,
    test_hooks: bool = False,
    progress: Progress | None = None,
) -> BuildResult:
    """Builds the archive and leaves `out_link`, a GC root, pointing at it. A build with nothing new takes a second.

    `manifest` defaults to the checkout's, `lock` to the one beside the manifest, else the checkout's; `system` to this
    machine's. Needs no network. Raises AgentboxError: exit 2 for sources that git does not know, else as `run_nix`.
    """
    manifest = manifest or checkout / "agentbox.toml"
    lock = lock or _lock_of(checkout, manifest)
    system = system or f"{platform.machine()}-linux"
    for needed in (manifest, lock):
        if not needed.is_file():
            raise AgentboxError(f"cannot build the image: {needed} does not exist", exit_code=ExitCode.USAGE)
    out_link.parent.mkdir(parents=True, exist_ok=True)
    package = "image-test-hooks" if test_hooks else "image"
    with flake_of(checkout.resolve(), manifest, lock) as flake:
        built = run_nix(["build", f"{flake}#packages.{system}.{package}", "--out-link", str(out_link)], progress)
    return read_archive(out_link.resolve(), tuple(built))


def _lock_of(checkout: Path, manifest: Path) -> Path:
    beside = manifest.parent / "agentbox.lock"
    return beside if beside.is_file() else checkout / "agentbox.lock"

"""Builds the image of a manifest with Nix."""

from collections.abc import Iterable
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.progress import Progress
from agentbox.host.image.archive import BuildResult, read_archive
from agentbox.host.image.flake_reference import flake_reference
from agentbox.host.image.nix import run_nix
from agentbox.host.packages.lock_inputs import host_system
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM


def build(
    checkout: Path,
    *,
    out_link: Path,
    system: str | None = None,
    manifest: Path | None = None,
    lock: Path | None = None,
    test_hooks: bool = False,
    own_skills: Iterable[Path] = (),
    progress: Progress | None = None,
) -> BuildResult:
    """Builds the archive; `out_link`, a GC root, then points to it. An unchanged build takes a
    second.

    `own_skills` are the folders of the manifest's own skills.

    `manifest` defaults to the checkout's, `lock` to the one beside the manifest, else the
    checkout's; `system` to this machine's. Needs no network. Raises AgentboxError: exit 2 for
    untracked sources, else as `run_nix`.
    """
    manifest = manifest or checkout / "agentbox.toml"
    lock = lock or _lock_path(checkout, manifest)
    package = _package(system or host_system(), test_hooks=test_hooks)
    for path in (manifest, lock):
        if not path.is_file():
            raise AgentboxError(
                f"cannot build the image: {path} does not exist", exit_code=ExitCode.USAGE
            )
    out_link.parent.mkdir(parents=True, exist_ok=True)
    with flake_reference(checkout.resolve(), manifest, lock, own_skills=own_skills) as flake:
        built = run_nix(
            ["build", f"{flake}#packages.{host_system()}.{package}", "--out-link", str(out_link)],
            progress,
        )
    return read_archive(out_link.resolve(), tuple(built))


def _package(system: str, *, test_hooks: bool) -> str:
    """Return the flake's package on this machine: unpacking runs no foreign code, so any system
    builds here.
    """
    if system == host_system():
        return "image-test-hooks" if test_hooks else "image"
    if system not in ARCH_OF_SYSTEM or test_hooks:
        subject = (
            f"an image with test hooks for {system}" if test_hooks else f"an image for {system}"
        )
        raise AgentboxError(f"cannot build {subject}: not supported", exit_code=ExitCode.USAGE)
    return f"image-{ARCH_OF_SYSTEM[system]}"


def _lock_path(checkout: Path, manifest: Path) -> Path:
    adjacent = manifest.parent / "agentbox.lock"
    return adjacent if adjacent.is_file() else checkout / "agentbox.lock"

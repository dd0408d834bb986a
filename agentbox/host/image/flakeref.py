"""Which flake a build evaluates: a copy of what git tracks, with the manifest and its lock laid over.

Always a copy, as a `path:` flake: for `git+file:` Nix runs git in the mount namespace that it was started in, where a
caller inside a chroot has no checkout (Nix 2.8, restoreMountNamespace); for `path:` it starts no program.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode

_SOURCES = ("agentbox", "nix", "config", "schema")
_REVISION = ".revision"  # nix/outputs.nix reads it where no git repository is


@contextmanager
def flake_of(checkout: Path, manifest: Path, lock: Path) -> Iterator[str]:
    """The flake reference for a build of `manifest` with `lock`. A copy lives as long as the context.

    Raises AgentboxError (exit 2) listing files of the sources that git does not know: Nix would not see them.
    """
    tracked = (checkout / ".git").exists()
    if tracked:
        _refuse_untracked(checkout)
    with tempfile.TemporaryDirectory(prefix="agentbox-flake-") as scratch:
        copy = Path(scratch)
        copy_sources(checkout, copy)
        shutil.copyfile(manifest, copy / "agentbox.toml")
        shutil.copyfile(lock, copy / "agentbox.lock")
        if tracked and not _git(checkout, "status", "--porcelain"):
            (copy / _REVISION).write_text(_git(checkout, "rev-parse", "HEAD")[0] + "\n")
        yield f"path:{copy}"


def copy_sources(checkout: Path, into: Path) -> None:
    """Copies what git tracks, as it is on disk now; without git the sources and the files at the top."""
    for path in _tracked(checkout) if (checkout / ".git").exists() else _all(checkout):
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / path, into / path, follow_symlinks=False)


def _refuse_untracked(checkout: Path) -> None:
    unknown = _git(checkout, "ls-files", "--others", "--exclude-standard", "--", *_SOURCES)
    if unknown:
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise AgentboxError(
            f"cannot build from {checkout}: git does not know {listed}, so Nix would not see it",
            "Run `git add` on what belongs to the image, or delete it.",
            exit_code=ExitCode.USAGE,
        )


def _tracked(checkout: Path) -> list[str]:
    return [path for path in _git(checkout, "ls-files") if (checkout / path).is_file()]


def _all(checkout: Path) -> list[str]:
    """Without git: the sources and the files at the top, less what Python leaves behind."""
    folders = [path for name in _SOURCES for path in (checkout / name).rglob("*") if "__pycache__" not in path.parts]
    files = [path for path in [*checkout.iterdir(), *folders] if path.is_file()]
    return sorted(path.relative_to(checkout).as_posix() for path in files)


def _git(checkout: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AgentboxError(
            f"cannot read the checkout {checkout}: git {arguments[0]}: {done.stderr.strip()}",
            "Run agentbox as the owner of the checkout.",
            exit_code=ExitCode.USAGE,
        )
    return done.stdout.splitlines()

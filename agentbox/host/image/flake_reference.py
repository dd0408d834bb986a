"""The flake of a build: a copy of the files that git tracks, with the manifest and its lock.

Always a copy, as a `path:` flake: for `git+file:` Nix runs git in its original mount namespace,
where a caller inside a chroot has no checkout (Nix 2.8, restoreMountNamespace); for `path:` it
starts no program.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import temporary_prefix

OWN_SKILLS = "manifest-skills"
"""Folder of the flake with the skills of `skills.corpus.paths`; nix/generated.nix names it."""
_SOURCES = ("agentbox", "nix", "config", "schema")
_REVISION = ".revision"  # nix/outputs.nix reads it if there is no git repository


@contextmanager
def flake_reference(
    checkout: Path, manifest: Path, lock: Path, *, own_skills: Iterable[Path] = ()
) -> Iterator[str]:
    """Yield the flake reference for a build of `manifest` with `lock`. The copy exists within the
    context. `own_skills` are the folders of the manifest's own skills.

    Raises AgentboxError (exit 2) listing untracked source files: Nix would not see them.
    """
    is_repository = (checkout / ".git").exists()
    if is_repository:
        _refuse_untracked(checkout)
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("flake")) as scratch:
        copy = Path(scratch)
        copy_sources(checkout, copy)
        shutil.copyfile(manifest, copy / "agentbox.toml")
        shutil.copyfile(lock, copy / "agentbox.lock")
        for folder in own_skills:
            shutil.copytree(folder, copy / OWN_SKILLS / folder.name, symlinks=True)
        if is_repository and not _git(checkout, "status", "--porcelain"):
            (copy / _REVISION).write_text(_git(checkout, "rev-parse", "HEAD")[0] + "\n")
        yield f"path:{copy}"


def copy_sources(checkout: Path, target: Path) -> None:
    """Copies the tracked files in their current state; without git the sources and the top-level
    files.
    """
    for path in _tracked(checkout) if (checkout / ".git").exists() else _all_sources(checkout):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / path, target / path, follow_symlinks=False)


def _refuse_untracked(checkout: Path) -> None:
    untracked = _git(checkout, "ls-files", "--others", "--exclude-standard", "--", *_SOURCES)
    if untracked:
        listed = ", ".join(untracked[:8]) + (
            f" and {len(untracked) - 8} more" if len(untracked) > 8 else ""
        )
        raise AgentboxError(
            f"cannot build from {checkout}: git does not track {listed}, so Nix would not see it",
            "Run `git add` on files that belong to the image, or delete them.",
            exit_code=ExitCode.USAGE,
        )


def _tracked(checkout: Path) -> list[str]:
    return [path for path in _git(checkout, "ls-files") if (checkout / path).is_file()]


def _all_sources(checkout: Path) -> list[str]:
    """Without git: the sources and the top-level files, without bytecode."""
    directories = [
        path
        for name in _SOURCES
        for path in (checkout / name).rglob("*")
        if "__pycache__" not in path.parts
    ]
    files = [path for path in [*checkout.iterdir(), *directories] if path.is_file()]
    return sorted(path.relative_to(checkout).as_posix() for path in files)


def _git(checkout: Path, *arguments: str) -> list[str]:
    result = subprocess.run(
        ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise AgentboxError(
            f"cannot read the checkout {checkout}: git {arguments[0]}: {result.stderr.strip()}",
            "Run agentbox as the owner of the checkout.",
            exit_code=ExitCode.USAGE,
        )
    return result.stdout.splitlines()

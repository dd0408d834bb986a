"""The compose folder of a box, and the compose program (v2 plugin, else docker-compose 1.29 or later) run in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from agentbox.engine.base import Start
from agentbox.engine.command import run, succeeds
from agentbox.engine.files import write_atomically, write_in_place
from agentbox.errors import AgentboxError, ExitCode

FILE = "docker-compose.yml"


@cache
def program() -> tuple[str, ...]:
    """The compose command of this machine. Raises AgentboxError (exit 3)."""
    if succeeds(["docker", "compose", "version"]):
        return ("docker", "compose")
    if shutil.which("docker-compose"):
        return ("docker-compose",)
    raise AgentboxError(
        "cannot start a box with docker: compose is not installed",
        "Install docker-compose (1.29 or later) or the compose plugin.",
        exit_code=ExitCode.PREREQUISITE,
    )


def compose(folder: Path, arguments: Sequence[str], *, doing: str, env: Mapping[str, str] | None = None) -> str:
    """Runs compose in the folder (1.29 resolves the seccomp path from there)."""
    return run([*program(), "-f", FILE, *arguments], cwd=folder, doing=doing, env=env)


def write_folder(start: Start) -> bool:
    """Writes compose file, seccomp, `.env`, manifest and secrets; True when anything but a secret changed."""
    from agentbox.render import compose_folder

    files = compose_folder(
        start.plan, start.image_ref, manifest=start.manifest, image_id=start.image_id, project=start.project,
        strict=start.strict, hooks=start.hooks,
    )  # fmt: skip
    folder = start.state.compose_dir
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    changed = False
    for name, content in files.items():
        changed |= _write(folder / name, content)
    write_secrets(folder / "secrets", {name: start.secrets.get(name, "") for name in start.plan.secrets})
    return changed


def write_secrets(folder: Path, values: Mapping[str, str]) -> None:
    """One file a secret, 0444 in a 0700 folder: uid 1000 in the box reads it whoever ran the CLI.

    A file is rewritten in place, since a file mount holds the inode.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, value in values.items():
        target = folder / name
        if not target.exists():
            write_atomically(target, value, 0o444)
        elif target.read_text() != value:
            target.chmod(0o644)
            target.write_text(value)
        target.chmod(0o444)


def _write(path: Path, content: bytes) -> bool:
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)  # in place: the manifest's mount holds the inode
    path.chmod(0o644)
    return True

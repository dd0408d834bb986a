"""The compose directory of a box, and running compose in it (v2 plugin, else docker-compose 1.29 or
later).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically, write_in_place
from agentbox.host.engines.base import StartSpec, StoredStart
from agentbox.host.engines.command import run, succeeds
from agentbox.host.engines.docker.docker_cli import explain_errors
from agentbox.host.engines.state import BoxState

FILE = "docker-compose.yml"
MANIFEST = "agentbox.toml"


@cache
def compose_command() -> tuple[str, ...]:
    """Return the compose command of this machine. Raises AgentboxError (exit 3)."""
    if succeeds(["docker", "compose", "version"]):
        return ("docker", "compose")
    if shutil.which("docker-compose"):
        return ("docker-compose",)
    raise AgentboxError(
        "cannot start a box with docker: compose is not installed",
        "Install docker-compose (1.29 or later) or the compose plugin.",
        exit_code=ExitCode.PREREQUISITE,
    )


def compose(
    directory: Path, arguments: Sequence[str], *, doing: str, env: Mapping[str, str] | None = None
) -> str:
    """Runs compose in the directory (1.29 resolves the seccomp path from there); Ctrl-C takes
    effect when it has ended.
    """
    argv = [*compose_command(), "-f", FILE, *arguments]
    return explain_errors(
        lambda: run(argv, cwd=directory, doing=doing, env=env, uninterruptible=True), doing
    )


def write_compose_directory(start: StartSpec) -> None:
    """Writes the compose file, seccomp, `.env`, manifest and secrets. Raises AgentboxError (exit
    3).
    """
    from agentbox.plan.render.files import compose_files

    files = compose_files(
        start.plan,
        start.image_ref,
        manifest=start.manifest,
        image_id=start.local_id,
        project=start.project,
        strict=start.strict,
        hooks=start.hooks,
        volumes=start.volumes,
        box=start.box,
        offline=start.offline,
    )
    directory = start.state.compose_dir
    _note_volumes(start)
    with wrap_os_errors(f"make {directory}"):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in files.items():
        _write(directory / name, content, mounted=name == MANIFEST)
    write_secrets(secrets_directory(start.state), secret_values(start))


def _note_volumes(start: StartSpec) -> None:
    """By their names in the daemon; a folder of the host is not agentbox's."""
    from agentbox.host.uninstall.inventory import Inventory  # needed for a start only
    from agentbox.plan.merge import effective_profile

    profile = effective_profile(start.plan)
    sources = [row.source for row in profile.volumes if not row.source.startswith("/")]
    names = (f"{start.name}-{start.volumes.get(source, source)}" for source in sources)
    Inventory(start.state.directory.parent).add("volume", *names)


def store_directory(directory: Path, folder: Path) -> None:
    """Copies the compose directory without the secrets. Raises AgentboxError (exit 3)."""
    with wrap_os_errors(f"write {folder}"):
        shutil.copytree(
            directory, folder, ignore=shutil.ignore_patterns("secrets"), dirs_exist_ok=True
        )


def write_stored_directory(stored: StoredStart) -> None:
    """The reverse, with the present secrets. Raises AgentboxError (exit 3)."""
    directory = stored.state.compose_dir
    with wrap_os_errors(f"make {directory}"):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = [path for path in sorted(stored.files.rglob("*")) if path.is_file()]
    for path in names:
        name = str(path.relative_to(stored.files))
        _write(directory / name, path.read_bytes(), mounted=name == MANIFEST)
    write_secrets(secrets_directory(stored.state), stored.secrets)


def secrets_directory(state: BoxState) -> Path:
    """The directory of a container's secret files."""
    return state.compose_dir / "secrets"


def secret_values(start: StartSpec) -> dict[str, str]:
    """Return every secret of the plan with its value, "" if it has none."""
    return {name: start.secrets.get(name, "") for name in start.plan.secrets}


def secrets_match(start: StartSpec, directory: Path) -> bool:
    """True if the secret files of a box have the values that `start` would set."""
    with wrap_os_errors(f"read {directory}"):
        files = {directory / name: value for name, value in secret_values(start).items()}
        return all(path.exists() and path.read_text() == value for path, value in files.items())


def write_secrets(directory: Path, values: Mapping[str, str]) -> None:
    """Writes one file per secret, 0444 in a 0700 directory: uid 1000 in the box reads it, whoever
    ran the CLI.
    """
    with wrap_os_errors(f"make {directory}"):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
    for name, value in values.items():
        _write(directory / name, value.encode(), mounted=True, mode=0o444)


def _write(path: Path, content: bytes, *, mounted: bool, mode: int = 0o644) -> None:
    """`mounted`: a mount holds the inode, so the file is written in place."""
    with wrap_os_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # docker creates it for a mount whose file is missing
            path.rmdir()
        if path.exists():
            path.chmod(0o644)
            if path.read_bytes() == content:
                path.chmod(mode)
                return
    if mounted and path.exists():
        write_in_place(path, content)
    else:
        write_atomically(path, content)
    path.chmod(mode)

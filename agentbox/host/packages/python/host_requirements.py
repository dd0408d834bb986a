"""Keeps `requirements.host`, `.mcp` and `.test` in sync with `pyproject.toml` and the lock."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from agentbox.core.progress import Progress
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.python.pyproject_requirements import read_project
from agentbox.host.packages.python.requirements import RequirementsFile, resolve
from agentbox.host.packages.relock import replace_file
from agentbox.plan.lockfile.model import Lock


def requirement_files(checkout: Path) -> tuple[RequirementsFile, ...]:
    """Return the files of the host (which runs the same application), of `agentbox mcp` and of the
    tests. A version in one holds for those after it.
    """
    project = read_project(checkout)
    host = (*project.runtime, *project.host)
    return (
        RequirementsFile(
            checkout / "requirements.host", host, "What agentbox.sh installs.", project.unused
        ),
        RequirementsFile(
            checkout / "requirements.mcp", project.mcp, "What `agentbox mcp` adds.", project.unused
        ),
        RequirementsFile(
            checkout / "requirements.test",
            project.test,
            "What `agentbox test` adds.",
            project.unused,
        ),
    )


def stale_files(checkout: Path) -> tuple[str, ...]:
    """Return the names of files that are older than `pyproject.toml`; offline."""
    return tuple(file.path.name for file in requirement_files(checkout) if file.is_stale)


def update_files(
    checkout: Path, lock: Lock, *, progress: Progress, upgrade: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Writes the stale files, or all for an upgrade; returns the names of changed ones.

    The host gets the versions of the image, and the others those of the host, if they fit. Raises
    ResolveError (exit 5), FetchError (exit 4).
    """
    files = requirement_files(checkout)
    if upgrade is None and not any(file.is_stale for file in files):
        return ()
    upgraded: set[str] | None = (
        None if upgrade is None else {str(canonicalize_name(name)) for name in upgrade}
    )
    index, changed = Index(pip_config()), []
    shared: Mapping[str, str] = {row.name: row.version for row in lock.wheels}
    for file in files:
        progress.stage(f"resolve {file.path.name}")
        data = resolve(file, {**_pinned(file, upgraded), **shared}, index)
        if not file.path.exists() or file.path.read_bytes() != data:
            replace_file(file.path, data)
            changed.append(file.path.name)
        shared = {**shared, **file.pins()}
        progress.done()
    return tuple(changed)


def _pinned(file: RequirementsFile, upgraded: set[str] | None) -> dict[str, str]:
    if upgraded is None:
        return file.pins()
    return {
        name: version for name, version in file.pins().items() if upgraded and name not in upgraded
    }

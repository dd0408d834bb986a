"""Queries pip for what it would install for a target, and reads its report (pip's "Installation
Report", version 1).
"""

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentbox.core.paths import temporary_prefix
from agentbox.host.network.diagnosis import Cause
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.host_command import CommandResult, run
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import PipConfig
from agentbox.host.packages.python.pip_failures import cause_at_index
from agentbox.host.packages.python.target import Target

_NO_MATCH = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")
_DRY_RUN_OPTIONS = (
    "--quiet",
    "--no-input",
    "--dry-run",
    "--ignore-installed",
    "--only-binary",
    ":all:",
    "--report",
    "-",
)


@dataclass(frozen=True)
class ResolvedWheel:
    """A wheel that pip selected. `name` is normalised."""

    name: str
    version: str
    file: str
    requires: tuple[Requirement, ...]


def resolve_wheels(
    config: PipConfig,
    target: Target,
    requirements: Sequence[str],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> dict[str, ResolvedWheel]:
    """Return what pip would install, by name; `pins` are constraints. Raises ResolveError if there
    is no solution.

    Requirements in `unused`, per distribution, are removed from `requires`.
    """
    result = _pip(config, target, requirements, pins)
    while result.code != 0 and pins:
        # pip names a pinned version that is no longer served; otherwise the conflict is unknown.
        missing = [canonicalize_name(name) for name in _NO_MATCH.findall(result.err)]
        pins = {name: version for name, version in pins.items() if missing and name not in missing}
        result = _pip(config, target, requirements, pins)
    if result.code != 0:
        raise _PipFailed(target, result)
    rows = json.loads(result.out)["install"]
    return {
        wheel.name: _without_dependencies(wheel, unused.get(wheel.name, ()))
        for wheel in map(_parse_wheel, rows)
    }


def explain_error(error: "ResolveError", index: Index) -> ResolveError:
    """Return the error as `has no wheel` if the index has the project but no matching wheel."""
    if isinstance(error, _PipFailed) and error.project and index.files(error.project):
        return ResolveError(
            f"cannot lock {error.project}: no wheel for Python {error.target.python} on "
            f"{error.target.arch}",
            "Nothing is built from source; choose another version or project.",
        )
    return error


class _PipFailed(ResolveError):
    def __init__(self, target: Target, result: CommandResult) -> None:
        cause = cause_at_index() or Cause(result.reason, "Fix the requirement.")
        super().__init__(
            f"cannot resolve Python packages for {target.arch}: {cause.why}", cause.hint
        )
        self.target = target
        match = _NO_MATCH.search(result.err)
        self.project = match[1] if match else ""


def _pip(
    config: PipConfig, target: Target, requirements: Sequence[str], pins: Mapping[str, str]
) -> CommandResult:
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("pip")) as directory:
        constraints = Path(directory) / "constraints.txt"
        constraints.write_text(
            "".join(f"{name}=={version}\n" for name, version in sorted(pins.items()))
        )
        argv = [
            sys.executable,
            "-m",
            "pip",
            "install",
            *_DRY_RUN_OPTIONS,
            "--target",
            directory,
            "--constraint",
            str(constraints),
        ]
        return run([*argv, *target.pip_flags, *requirements], extra=config.environment)


def _without_dependencies(wheel: ResolvedWheel, unused: Sequence[str]) -> ResolvedWheel:
    requires = tuple(
        requirement
        for requirement in wheel.requires
        if canonicalize_name(requirement.name) not in unused
    )
    return replace(wheel, requires=requires)


def _parse_wheel(row: Mapping[str, dict[str, object]]) -> ResolvedWheel:
    metadata, url = row["metadata"], str(row["download_info"]["url"])
    requires = metadata.get("requires_dist") or []
    assert isinstance(requires, list)
    return ResolvedWheel(
        name=canonicalize_name(str(metadata["name"])),
        version=str(metadata["version"]),
        file=unquote(urlsplit(url).path.rpartition("/")[2]),
        requires=tuple(Requirement(text) for text in requires),
    )

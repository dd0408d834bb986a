"""`requirements.host`, `.mcp` and `.test`: what agentbox.sh, `agentbox mcp` and `agentbox test`
install, for every supported Python.

One file covers Python 3.11 to 3.14 on both architectures, with markers where versions or packages
differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from agentbox.core.canonical import canonical_json, digest
from agentbox.host.packages.python.closure import UnmetRequirements, reachable, resolve_closure
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.python.pip_report import ResolvedWheel
from agentbox.host.packages.python.tags import installable
from agentbox.host.packages.python.target import Target

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ARCHS = ("amd64", "arm64")
# Versions are chosen for the oldest C library of a distribution with Python 3.11 (RHEL 9: 2.34);
# digests are listed for newer ones too.
_OLDEST, _NEWEST = 34, 41
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_INPUTS = re.compile(r"^# inputs (sha256:[0-9a-f]{64})$", re.MULTILINE)

Environment = tuple[str, str]  # Python, architecture
ResolvedWheels = Mapping[Environment, Mapping[str, ResolvedWheel]]


@dataclass(frozen=True)
class RequirementsFile:
    """One of the files, and its requirements."""

    path: Path
    requirements: tuple[str, ...]
    purpose: str
    unused: Mapping[str, tuple[str, ...]]

    @property
    def inputs(self) -> str:
        return digest(canonical_json([sorted(self.requirements), PYTHONS, ARCHS, self.unused]))

    @property
    def is_stale(self) -> bool:
        """True if it is missing or was written for other requirements."""
        if not self.path.exists():
            return True
        match = _INPUTS.search(self.path.read_text())
        return match is None or match[1] != self.inputs

    def pins(self) -> dict[str, str]:
        """Return the versions in the file, of packages with a single version."""
        rows = _PINNED.findall(self.path.read_text()) if self.path.exists() else []
        versions: dict[str, set[str]] = {}
        for name, version in rows:
            versions.setdefault(name, set()).add(version)
        return {name: values.pop() for name, values in versions.items() if len(values) == 1}


def resolve(file: RequirementsFile, pins: Mapping[str, str], index: Index) -> bytes:
    """Return the content of the file. `pins` are kept while they are served and fit. Raises
    ResolveError, FetchError.
    """
    resolved: dict[Environment, Mapping[str, ResolvedWheel]] = {}
    for python in PYTHONS:
        for arch in ARCHS:
            resolved[python, arch] = _resolve_target(
                file, Target(python, arch, _OLDEST), pins, index, list(resolved.values())
            )
    return _render(file, resolved, index).encode()


def _resolve_target(
    file: RequirementsFile,
    target: Target,
    pins: Mapping[str, str],
    index: Index,
    previous: Sequence[Mapping[str, ResolvedWheel]],
) -> Mapping[str, ResolvedWheel]:
    """Return the result of another target if it fits this one; pip is queried only otherwise."""
    roots = [Requirement(text) for text in file.requirements]
    for other in reversed(previous):
        try:
            names = reachable(other, roots, target)
        except UnmetRequirements:
            continue
        if all(installable(index, target, name, other[name].version) for name in names):
            return {name: other[name] for name in names}
    pinned = {name: wheel.version for other in previous for name, wheel in other.items()}
    return resolve_closure(
        pip_config(), index, target, file.requirements, {**pins, **pinned}, file.unused
    )


def _render(file: RequirementsFile, resolved: ResolvedWheels, index: Index) -> str:
    lines = [
        (
            f"# {file.purpose} Written by `agentbox lock`, for Python {PYTHONS[0]} and newer on "
            "x86_64 and aarch64 Linux."
        ),
        f"# inputs {file.inputs}",
    ]
    versions: dict[tuple[str, str], list[Environment]] = {}
    for environment, wheels in resolved.items():
        for row in wheels.values():
            versions.setdefault((row.name, row.version), []).append(environment)
    for (name, version), environments in sorted(versions.items()):
        marker = marker_for(environments)
        lines.append(f"{name}=={version}{f' ; {marker}' if marker else ''} \\")
        digests = _digests(index, name, version, environments)
        lines.append(" \\\n".join(f"    --hash=sha256:{value}" for value in digests))
    return "\n".join(lines) + "\n"


def _digests(
    index: Index, name: str, version: str, environments: Iterable[Environment]
) -> list[str]:
    targets = (Target(python, arch, _NEWEST) for python, arch in environments)
    return sorted(
        {row.sha256 for target in targets for row in installable(index, target, name, version)}
    )


def marker_for(environments: Sequence[Environment]) -> str:
    """Return the marker of exactly these environments; "" for all. A range up to the newest Python
    includes later ones.
    """
    available = set(environments)
    complete = [python for python in PYTHONS if all((python, arch) in available for arch in ARCHS)]
    clauses = [_python_clause(complete)] if complete else []
    if complete == list(PYTHONS):
        return ""
    for arch in ARCHS:
        remaining = [
            python for python in PYTHONS if (python, arch) in available and python not in complete
        ]
        if remaining:
            machine = f'platform_machine == "{Target(PYTHONS[0], arch, _OLDEST).machine}"'
            clauses.append(
                machine
                if remaining == list(PYTHONS)
                else f"({_python_clause(remaining)}) and {machine}"
            )
    return " or ".join(clauses)


def _python_clause(versions: Sequence[str]) -> str:
    count = len(versions)
    if tuple(versions) == PYTHONS[-count:]:
        return f'python_version >= "{versions[0]}"'
    if tuple(versions) == PYTHONS[:count]:
        return f'python_version < "{PYTHONS[count]}"'
    return " or ".join(f'python_version == "{python}"' for python in versions)

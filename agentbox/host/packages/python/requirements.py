"""`requirements.host` and `requirements.test`: what agentbox.sh and `agentbox test` install, for every supported Python.

One file serves Python 3.11 to 3.14 on both architectures: markers stand where versions or packages differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from agentbox.core.canonical import canonical_json, digest
from agentbox.host.packages.python.closure import Unmet, close, reached
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.python.pip_report import Chosen
from agentbox.host.packages.python.tags import installable
from agentbox.host.packages.python.target import Target

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ARCHS = ("amd64", "arm64")
# Versions are chosen for the oldest C library of a distribution that has Python 3.11 (RHEL 9: 2.34); digests are listed
# for newer ones too.
_OLDEST, _NEWEST = 34, 41
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_INPUTS = re.compile(r"^# inputs (sha256:[0-9a-f]{64})$", re.MULTILINE)

Environment = tuple[str, str]  # Python, architecture
Found = Mapping[Environment, Mapping[str, Chosen]]


@dataclass(frozen=True)
class RequirementsFile:
    """One of the two files, and what it is asked to hold."""

    path: Path
    wanted: tuple[str, ...]
    purpose: str
    unused: Mapping[str, tuple[str, ...]]

    @property
    def inputs(self) -> str:
        return digest(canonical_json([sorted(self.wanted), PYTHONS, ARCHS, self.unused]))

    @property
    def stale(self) -> bool:
        """True when it is missing or was made for other requirements."""
        if not self.path.exists():
            return True
        match = _INPUTS.search(self.path.read_text())
        return match is None or match[1] != self.inputs

    def pins(self) -> dict[str, str]:
        """The versions it holds now, of packages that have one version only."""
        rows = _PINNED.findall(self.path.read_text()) if self.path.exists() else []
        versions: dict[str, set[str]] = {}
        for name, version in rows:
            versions.setdefault(name, set()).add(version)
        return {name: found.pop() for name, found in versions.items() if len(found) == 1}


def resolve(file: RequirementsFile, pins: Mapping[str, str], index: Index) -> bytes:
    """The text of the file. `pins` are kept where they are served and fit. Raises ResolveError, FetchError."""
    found: dict[Environment, Mapping[str, Chosen]] = {}
    for python in PYTHONS:
        for arch in ARCHS:
            found[python, arch] = _for_target(file, Target(python, arch, _OLDEST), pins, index, list(found.values()))
    return _text(file, found, index).encode()


def _for_target(
    file: RequirementsFile,
    target: Target,
    pins: Mapping[str, str],
    index: Index,
    known: Sequence[Mapping[str, Chosen]],
) -> Mapping[str, Chosen]:
    """An answer that holds for another target is taken where it holds here too; pip is asked only where none does."""
    roots = [Requirement(text) for text in file.wanted]
    for other in reversed(known):
        try:
            names = reached(other, roots, target)
        except Unmet:
            continue
        if all(installable(index, target, name, other[name].version) for name in names):
            return {name: other[name] for name in names}
    kept = {name: chosen.version for other in known for name, chosen in other.items()}
    return close(pip_config(), index, target, file.wanted, {**pins, **kept}, file.unused)


def _text(file: RequirementsFile, found: Found, index: Index) -> str:
    lines = [
        f"# {file.purpose} Written by `agentbox lock`, for Python {PYTHONS[0]} and newer on x86_64 and aarch64 Linux.",
        f"# inputs {file.inputs}",
    ]
    versions: dict[tuple[str, str], list[Environment]] = {}
    for environment, chosen in found.items():
        for row in chosen.values():
            versions.setdefault((row.name, row.version), []).append(environment)
    for (name, version), where in sorted(versions.items()):
        marker = markers(where)
        lines.append(f"{name}=={version}{f' ; {marker}' if marker else ''} \\")
        digests = _digests(index, name, version, where)
        lines.append(" \\\n".join(f"    --hash=sha256:{value}" for value in digests))
    return "\n".join(lines) + "\n"


def _digests(index: Index, name: str, version: str, where: Iterable[Environment]) -> list[str]:
    targets = (Target(python, arch, _NEWEST) for python, arch in where)
    return sorted({row.sha256 for target in targets for row in installable(index, target, name, version)})


def markers(where: Sequence[Environment]) -> str:
    """The marker that holds in just these environments; "" for all. A run up to the newest Python includes later ones."""
    have = set(where)
    whole = [python for python in PYTHONS if all((python, arch) in have for arch in ARCHS)]
    clauses = [_pythons(whole)] if whole else []
    if whole == list(PYTHONS):
        return ""
    for arch in ARCHS:
        rest = [python for python in PYTHONS if (python, arch) in have and python not in whole]
        if rest:
            machine = f'platform_machine == "{Target(PYTHONS[0], arch, _OLDEST).machine}"'
            clauses.append(machine if rest == list(PYTHONS) else f"({_pythons(rest)}) and {machine}")
    return " or ".join(clauses)


def _pythons(some: Sequence[str]) -> str:
    count = len(some)
    if tuple(some) == PYTHONS[-count:]:
        return f'python_version >= "{some[0]}"'
    if tuple(some) == PYTHONS[:count]:
        return f'python_version < "{PYTHONS[count]}"'
    return " or ".join(f'python_version == "{python}"' for python in some)

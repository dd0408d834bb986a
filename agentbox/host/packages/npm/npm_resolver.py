"""npm packages of features: resolved by npm itself, without running scripts of packages."""

import base64
import hashlib
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbox.core.canonical import file_sha256
from agentbox.core.paths import temporary_prefix
from agentbox.core.progress import Progress
from agentbox.host.packages.errors import FetchError, NotTrustedError, ResolveError
from agentbox.host.packages.npm.dependencies import MODULES, find_package, needed_paths
from agentbox.host.packages.npm.npm_pack import (
    NpmPacker,
    cause_at_registry,
    failure_reason,
    run_npm,
    tarball_name,
)
from agentbox.manifest.features.npm_spec import CPUS, NpmSpec, npm_specs
from agentbox.plan.lockfile.inputs import LockInputs, RequestedPackages
from agentbox.plan.lockfile.model import NpmEntry
from agentbox.plan.lockfile.names import store_name


@dataclass(frozen=True)
class _Installation:
    """A package at one path of a feature's lock file. `integrity` is that of its tarball according
    to the registry.
    """

    feature: str
    path: str
    name: str
    version: str
    integrity: str
    archs: tuple[str, ...]


def resolve(
    inputs: LockInputs, archs: Sequence[str], pins: Mapping[str, str], progress: Progress
) -> tuple[NpmEntry, ...]:
    """Return the rows of every feature's npm list. `pins`: path in the image -> version to keep
    while it is served.

    Raises ResolveError (exit 5), FetchError (exit 4), PrerequisiteError (exit 3) without npm.
    """
    requested = {name: listed for name, listed in sorted(inputs.features.items()) if listed.npm}
    installations = [
        installation
        for name, listed in requested.items()
        for installation in _installations(name, listed, archs, pins, progress)
    ]
    grouped: dict[tuple[str, str], list[_Installation]] = defaultdict(list)
    for installation in installations:
        grouped[installation.name, installation.version].append(installation)
    if not grouped:
        return ()
    progress.stage("fetch npm packages", len(grouped))
    packer, rows = NpmPacker(list(grouped)), []
    for key in sorted(grouped):
        rows.append(_npm_entry(grouped[key], packer.file(key)))
        progress.advance(1)
    progress.done()
    return tuple(sorted(rows))


def _installations(
    feature: str,
    requested: RequestedPackages,
    archs: Sequence[str],
    pins: Mapping[str, str],
    progress: Progress,
) -> Iterator[_Installation]:
    progress.stage(f"resolve npm packages of {feature}")
    packages = _resolve_tree(feature, requested, archs, pins)
    if requested.npm_optional_ignored:
        specs = [spec for arch in archs for spec in npm_specs(requested.npm, arch)]
        needed = needed_paths([spec.directory for spec in specs], packages)
        packages = {path: packages[path] for path in needed}
    for path, row in sorted(packages.items()):
        supported = tuple(arch for arch in archs if _supports(row, arch))
        if not path or not supported or row.get("inBundle") or row.get("link"):
            continue
        if row.get("hasInstallScript") and not requested.npm_scripts_ignored:
            raise ResolveError(
                f"cannot lock npm package {_name(path, row)}: it has an install script, and "
                "scripts are never run",
                f"Explain in config/features/{feature}.toml why it works without: "
                "npm_scripts_ignored.",
            )
        yield _Installation(
            feature, path, _name(path, row), row["version"], row.get("integrity", ""), supported
        )
    progress.done()


def _resolve_tree(
    feature: str, requested: RequestedPackages, archs: Sequence[str], pins: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the `packages` of npm's lock file for the list, with the pinned versions if all are
    served.
    """
    specs = {spec.directory: spec for arch in archs for spec in npm_specs(requested.npm, arch)}
    pinned = {
        path.partition(MODULES)[2]: pins[path]
        for path in pins
        if path.startswith(f"{feature}/{MODULES}")
    }
    packages = _resolve_with_npm(feature, specs, pinned)
    if pinned and _missing_package(specs, packages):
        packages = _resolve_with_npm(feature, specs, {})
    if missing := _missing_package(specs, packages):
        _refuse_untrusted(feature)
        raise ResolveError(
            f"cannot resolve npm packages of {feature}: the registry does not serve {missing}",
            "Fix the feature's list.",
        )
    return packages


def _refuse_untrusted(feature: str) -> None:
    """Raises NotTrustedError if a certificate or a proxy is why npm failed."""
    if cause := cause_at_registry():
        raise NotTrustedError(f"cannot resolve npm packages of {feature}: {cause.why}", cause.hint)


def _missing_package(specs: Mapping[str, NpmSpec], packages: Mapping[str, Any]) -> str:
    """Return the first package that was requested or is required by another and that npm left out;
    "" if none.
    """
    for directory, spec in specs.items():
        if f"{MODULES}{directory}" not in packages:
            # npm leaves out either, or both
            return f"{spec.name} {spec.range}, or a package that it requires"
    for path, row in packages.items():
        for name, version_range in row.get("dependencies", {}).items() if path else ():
            if not find_package(path, name, packages):
                return f"{name} {version_range}, which {_name(path, row)} needs"
    return ""


def _resolve_with_npm(
    feature: str, specs: Mapping[str, NpmSpec], pinned: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return what npm would install, by path; empty if pinned versions do not resolve. Raises
    ResolveError.

    All are requested as optional, because npm rejects a required package for another processor;
    packages that could not be fetched are missing from the result.
    """
    manifest = {
        "name": "locked",
        "private": True,
        "optionalDependencies": {
            directory: spec.specifier(pinned.get(directory, spec.range))
            for directory, spec in specs.items()
        },
        "overrides": _overrides(specs, pinned),
    }
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("npm")) as directory:
        workdir = Path(directory)
        (workdir / "package.json").write_text(json.dumps(manifest))
        result = run_npm(workdir, "install", "--package-lock-only", "--no-audit", "--no-fund")
        if result.code != 0 and pinned:
            return {}
        if result.code != 0:
            _refuse_untrusted(feature)
            raise ResolveError(
                f"cannot resolve npm packages of {feature}: {failure_reason(result)}",
                "Fix the feature's list.",
            )
        packages: Mapping[str, Any] = json.loads((workdir / "package-lock.json").read_text())[
            "packages"
        ]
    return packages


def _overrides(specs: Mapping[str, NpmSpec], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return versions of indirect dependencies, for names that occur once, because an override
    applies to all.
    """
    name_counts = Counter(directory.rpartition(MODULES)[2] for directory in pinned)
    return {
        name: version
        for name, version in pinned.items()
        if name_counts[name] == 1 and name not in specs
    }


def _npm_entry(installations: Sequence[_Installation], file: Path) -> NpmEntry:
    first = installations[0]
    _verify_tarball(first, file)
    return NpmEntry(
        name=first.name,
        version=first.version,
        file=store_name(tarball_name(first.name, first.version)),
        size=file.stat().st_size,
        sha256=file_sha256(file),
        arch=tuple(sorted({arch for installation in installations for arch in installation.archs})),
        features=tuple(sorted({installation.feature for installation in installations})),
        paths=tuple(
            sorted(f"{installation.feature}/{installation.path}" for installation in installations)
        ),
    )


def _verify_tarball(installation: _Installation, file: Path) -> None:
    """Checks the tarball against the registry's index (Subresource Integrity). Raises FetchError,
    ResolveError.
    """
    algorithm, _, expected = installation.integrity.split(" ")[0].partition("-")
    if algorithm not in ("sha512", "sha384", "sha256"):
        raise ResolveError(
            f"cannot lock npm package {installation.name}: the registry has no SHA-2 digest for it"
        )
    with file.open("rb") as stream:
        actual = base64.b64encode(hashlib.file_digest(stream, algorithm).digest()).decode()
    if actual != expected:
        raise FetchError(
            f"cannot accept {file.name}: its {algorithm} is {actual[:12]}…, expected "
            f"{expected[:12]}… from the registry's index",
            "The mirror or the network changed it.",
        )


def _supports(row: Mapping[str, Any], arch: str) -> bool:
    """Checks the `os`, `cpu` and `libc` lists of a package (npm package.json); `!x` excludes."""
    values = (("os", "linux"), ("cpu", CPUS[arch]), ("libc", "glibc"))
    return all(_allows(row.get(key, ()), value) for key, value in values)


def _allows(listed: Sequence[str], value: str) -> bool:
    if f"!{value}" in listed:
        return False
    allowed = [item for item in listed if not item.startswith("!")]
    return not allowed or value in allowed


def _name(path: str, row: Mapping[str, Any]) -> str:
    return str(row.get("name") or path.rpartition(MODULES)[2])

"""npm packages of features: resolved by npm itself, without running a script of any of them."""

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
from agentbox.core.progress import Progress
from agentbox.host.packages.errors import FetchError, ResolveError
from agentbox.host.packages.npm.npm_pack import Packer, npm, tarball_name, why
from agentbox.manifest.features.npm_spec import CPUS, NpmSpec, npm_specs
from agentbox.plan.lockfile.inputs import Inputs, Wanted
from agentbox.plan.lockfile.model import NpmEntry
from agentbox.plan.lockfile.names import store_name

_MODULES = "node_modules/"


@dataclass(frozen=True)
class _Place:
    """A package at one path of a feature's lock file. `integrity` is what the registry states of its tarball."""

    feature: str
    path: str
    name: str
    version: str
    integrity: str
    archs: tuple[str, ...]


def resolve(inputs: Inputs, archs: Sequence[str], pins: Mapping[str, str], progress: Progress) -> tuple[NpmEntry, ...]:
    """The rows of every feature's npm list. `pins`: path in the image -> version to keep while it is served.

    Raises ResolveError (exit 5), FetchError (exit 4), PrerequisiteError (exit 3) without npm.
    """
    wanted = {name: listed for name, listed in sorted(inputs.features.items()) if listed.npm}
    places = [place for name, listed in wanted.items() for place in _places(name, listed, archs, pins, progress)]
    grouped: dict[tuple[str, str], list[_Place]] = defaultdict(list)
    for place in places:
        grouped[place.name, place.version].append(place)
    if not grouped:
        return ()
    progress.stage("fetch npm packages", len(grouped))
    packer, rows = Packer(list(grouped)), []
    for key in sorted(grouped):
        rows.append(_row(grouped[key], packer.file(key)))
        progress.advance(1)
    progress.done()
    return tuple(sorted(rows))


def _places(
    feature: str, wanted: Wanted, archs: Sequence[str], pins: Mapping[str, str], progress: Progress
) -> Iterator[_Place]:
    progress.stage(f"resolve npm packages of {feature}")
    packages = _locked(feature, wanted, archs, pins)
    for path, row in sorted(packages.items()):
        fitting = tuple(arch for arch in archs if _fits(row, arch))
        if not path or not fitting or row.get("inBundle") or row.get("link"):
            continue
        if row.get("hasInstallScript") and not wanted.npm_scripts_ignored:
            raise ResolveError(
                f"cannot lock npm package {_name(path, row)}: it has an install script, and none is ever run",
                f"Say in config/features/{feature}.toml why it works without: npm_scripts_ignored.",
            )
        yield _Place(feature, path, _name(path, row), row["version"], row.get("integrity", ""), fitting)
    progress.done()


def _locked(feature: str, wanted: Wanted, archs: Sequence[str], pins: Mapping[str, str]) -> Mapping[str, Any]:
    """The `packages` of the lock file that npm makes for the list: with the versions kept, where they are all served."""
    specs = {spec.folder: spec for arch in archs for spec in npm_specs(wanted.npm, arch)}
    kept = {path.partition(_MODULES)[2]: pins[path] for path in pins if path.startswith(f"{feature}/{_MODULES}")}
    packages = _ask(feature, specs, kept)
    if kept and _absent(specs, packages):
        packages = _ask(feature, specs, {})
    if absent := _absent(specs, packages):
        raise ResolveError(
            f"cannot resolve npm packages of {feature}: the registry does not serve {absent}",
            "Mend the feature's list.",
        )
    return packages


def _absent(specs: Mapping[str, NpmSpec], packages: Mapping[str, Any]) -> str:
    """The first package that was asked for, or that one of the others requires, and that npm left out; "" for none."""
    for folder, spec in specs.items():
        if f"{_MODULES}{folder}" not in packages:
            return f"{spec.name} {spec.range}, or what it requires"  # npm leaves out either, or both
    for path, row in packages.items():
        for name, wanted in row.get("dependencies", {}).items() if path else ():
            if not any(f"{place}{_MODULES}{name}" in packages for place in _places_up(path)):
                return f"{name} {wanted}, which {_name(path, row)} needs"
    return ""


def _places_up(path: str) -> Iterator[str]:
    """Where Node looks for what a package requires: below it, then below each package that holds it."""
    while path:
        yield f"{path}/"
        path = path.rpartition(_MODULES)[0].rstrip("/")
    yield ""


def _ask(feature: str, specs: Mapping[str, NpmSpec], kept: Mapping[str, str]) -> Mapping[str, Any]:
    """What npm would install for these, by path; nothing where kept versions do not resolve. Raises ResolveError.

    All are asked for as optional, since a required package for another processor than this machine's is refused; what
    could not be had is missing in the answer.
    """
    manifest = {
        "name": "locked",
        "private": True,
        "optionalDependencies": {folder: spec.at(kept.get(folder, spec.range)) for folder, spec in specs.items()},
        "overrides": _overrides(specs, kept),
    }
    with tempfile.TemporaryDirectory(prefix="agentbox-npm-") as folder:
        here = Path(folder)
        (here / "package.json").write_text(json.dumps(manifest))
        done = npm(here, "install", "--package-lock-only", "--no-audit", "--no-fund")
        if done.code != 0 and kept:
            return {}
        if done.code != 0:
            raise ResolveError(f"cannot resolve npm packages of {feature}: {why(done)}", "Mend the feature's list.")
        packages: Mapping[str, Any] = json.loads((here / "package-lock.json").read_text())["packages"]
    return packages


def _overrides(specs: Mapping[str, NpmSpec], kept: Mapping[str, str]) -> dict[str, str]:
    """Versions of what packages need in turn: of those names that were there once, for an override holds for all."""
    named = Counter(folder.rpartition(_MODULES)[2] for folder in kept)
    return {name: version for name, version in kept.items() if named[name] == 1 and name not in specs}


def _row(places: Sequence[_Place], file: Path) -> NpmEntry:
    first = places[0]
    _check(first, file)
    return NpmEntry(
        name=first.name,
        version=first.version,
        file=store_name(tarball_name(first.name, first.version)),
        size=file.stat().st_size,
        sha256=file_sha256(file),
        arch=tuple(sorted({arch for place in places for arch in place.archs})),
        features=tuple(sorted({place.feature for place in places})),
        paths=tuple(sorted(f"{place.feature}/{place.path}" for place in places)),
    )


def _check(place: _Place, file: Path) -> None:
    """The tarball is the one that the registry's index names (Subresource Integrity). Raises FetchError, ResolveError."""
    algorithm, _, stated = place.integrity.split(" ")[0].partition("-")
    if algorithm not in ("sha512", "sha384", "sha256"):
        raise ResolveError(f"cannot lock npm package {place.name}: the registry states no SHA-2 digest of it")
    with file.open("rb") as stream:
        found = base64.b64encode(hashlib.file_digest(stream, algorithm).digest()).decode()
    if found != stated:
        raise FetchError(
            f"cannot accept {file.name}: its {algorithm} is {found[:12]}…, the registry's index says {stated[:12]}…",
            "The mirror or the network altered it.",
        )


def _fits(row: Mapping[str, Any], arch: str) -> bool:
    """By the `os`, `cpu` and `libc` lists of a package (npm package.json); `!x` excludes."""
    values = (("os", "linux"), ("cpu", CPUS[arch]), ("libc", "glibc"))
    return all(_allows(row.get(key, ()), value) for key, value in values)


def _allows(listed: Sequence[str], value: str) -> bool:
    if f"!{value}" in listed:
        return False
    wanted = [word for word in listed if not word.startswith("!")]
    return not wanted or value in wanted


def _name(path: str, row: Mapping[str, Any]) -> str:
    return str(row.get("name") or path.rpartition(_MODULES)[2])

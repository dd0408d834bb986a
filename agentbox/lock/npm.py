"""npm packages of features: resolved by npm itself, without running a script of any of them."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbox.canonical import file_sha256
from agentbox.lock.errors import FetchError, ResolveError
from agentbox.lock.tool import Result, run
from agentbox.lockfile import Inputs, NpmEntry, Wanted, store_name
from agentbox.progress import Progress

_CPU = {"amd64": "x64", "arm64": "arm64"}
_SPEC = re.compile(r"^(?P<name>@?[^@]+)(?:@(?P<range>.+))?$")


@dataclass(frozen=True)
class _Place:
    """A package at one path of a feature's lock file."""

    feature: str
    path: str
    name: str
    version: str
    archs: tuple[str, ...]


def resolve(
    inputs: Inputs, archs: Sequence[str], pins: Mapping[str, str], cache: Path, progress: Progress
) -> tuple[NpmEntry, ...]:
    """The rows of every feature's npm list. Raises ResolveError (exit 5), FetchError, PrerequisiteError without npm."""
    wanted = {name: listed for name, listed in sorted(inputs.features.items()) if listed.npm}
    places = [place for name, listed in wanted.items() for place in _places(name, listed, archs, pins, progress)]
    grouped: dict[tuple[str, str], list[_Place]] = {}
    for place in places:
        grouped.setdefault((place.name, place.version), []).append(place)
    return tuple(sorted(_row(grouped[key], cache) for key in grouped))


def pack(name: str, version: str, target: Path) -> None:
    """Fetches one tarball with the host's npm, its registry and credentials. Raises FetchError."""
    with tempfile.TemporaryDirectory(prefix="agentbox-npm-") as folder:
        done = _npm(Path(folder), "pack", f"{name}@{version}", "--json", "--pack-destination", folder)
        made = next(Path(folder).glob("*.tgz"), None)
        if done.code != 0 or made is None:
            raise FetchError(f"cannot download {name} {version}: {done.why}", "Connect to the network and try again.")
        target.write_bytes(made.read_bytes())


def _places(
    feature: str, wanted: Wanted, archs: Sequence[str], pins: Mapping[str, str], progress: Progress
) -> Iterator[_Place]:
    progress.stage(f"resolve npm packages of {feature}")
    packages = _locked(feature, wanted, pins)
    for path, row in sorted(packages.items()):
        if not path:
            continue
        if row.get("hasInstallScript") and not wanted.npm_scripts_ignored:
            raise ResolveError(
                f"cannot lock npm package {_name(path, row)}: it has an install script, and none is ever run",
                f"Say in config/features/{feature}.toml why it works without: npm_scripts_ignored.",
            )
        fitting = tuple(arch for arch in archs if _fits(row, arch))
        if fitting:
            yield _Place(feature, path, _name(path, row), row["version"], fitting)
    progress.done()


def _locked(feature: str, wanted: Wanted, pins: Mapping[str, str]) -> Mapping[str, Any]:
    """The `packages` of the lock file that npm makes for the list; pins hold what is named at the top."""
    asked = {}
    for spec in wanted.npm:
        match = _SPEC.match(spec)
        assert match is not None
        asked[match["name"]] = pins.get(match["name"]) or match["range"] or "latest"
    with tempfile.TemporaryDirectory(prefix="agentbox-npm-") as folder:
        here = Path(folder)
        (here / "package.json").write_text(json.dumps({"name": "locked", "private": True, "dependencies": asked}))
        done = _npm(here, "install", "--package-lock-only", "--no-audit", "--no-fund")
        if done.code != 0:
            raise ResolveError(f"cannot resolve npm packages of {feature}: {done.why}", "Mend the feature's list.")
        packages: Mapping[str, Any] = json.loads((here / "package-lock.json").read_text())["packages"]
        return packages


def _row(places: Sequence[_Place], cache: Path) -> NpmEntry:
    first = places[0]
    file = store_name(f"{first.name.lstrip('@').replace('/', '-')}-{first.version}.tgz")
    folder = cache / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / file
    pack(first.name, first.version, made)
    return NpmEntry(
        name=first.name,
        version=first.version,
        file=file,
        size=made.stat().st_size,
        sha256=file_sha256(made),
        arch=tuple(sorted({arch for place in places for arch in place.archs})),
        features=tuple(sorted({place.feature for place in places})),
        paths=tuple(sorted(f"{place.feature}/{place.path}" for place in places)),
    )


def _fits(row: Mapping[str, Any], arch: str) -> bool:
    """By the `os`, `cpu` and `libc` lists of a package (npm package.json); `!x` excludes."""
    values = (("os", "linux"), ("cpu", _CPU[arch]), ("libc", "glibc"))
    return all(_allows(row.get(key, ()), value) for key, value in values)


def _allows(listed: Sequence[str], value: str) -> bool:
    if f"!{value}" in listed:
        return False
    wanted = [word for word in listed if not word.startswith("!")]
    return not wanted or value in wanted


def _name(path: str, row: Mapping[str, Any]) -> str:
    return str(row.get("name") or path.rpartition("node_modules/")[2])


def _npm(folder: Path, *arguments: str) -> Result:
    return run(["npm", *arguments, "--ignore-scripts", "--loglevel=error"], cwd=folder)

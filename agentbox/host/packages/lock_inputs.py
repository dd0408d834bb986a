"""Manifest, feature files and `pyproject.toml` -> the inputs of a lock."""

import platform
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.apt.suite_versions import suite_by_name
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.pyproject_requirements import read_project
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.load import Manifest
from agentbox.manifest.skills.corpus import (
    digests,
    manifest_directories,
    shipped_digests,
    shipped_folders,
    skill_folders,
)
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.inputs import LockInputs, RequestedPackages
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.reader import parse_lock

CORE = "core"
SYSTEMS = ("aarch64-linux", "x86_64-linux")


def host_system() -> str:
    """Return the system of this machine, as Nix names it. Raises ResolveError (exit 5) if there are
    no images for it.
    """
    machine = platform.machine().lower()
    system = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine) + "-linux"
    if system not in SYSTEMS:
        raise ResolveError(f"cannot build on {machine}: images exist for {' and '.join(SYSTEMS)}")
    return system


def lock_inputs(
    manifest: Manifest,
    *,
    lock: Path | None = None,
    systems: Sequence[str] = (),
    features: Mapping[str, Feature] | None = None,
    skills: Mapping[str, str] | None = None,
    checkout: Path = CHECKOUT,
) -> LockInputs:
    """Return what the manifest requires, for its systems and `systems`.

    Without systems in the manifest these are this machine's and those of the `lock`: a lock for
    more machines is not stale here, and locking again
    keeps them. `skills` are digests by name, as of `manifest_skills` (default: those that agentbox
    brings). Raises ResolveError (exit 5) for
    an unknown suite.
    """
    image, all_features = manifest.usable.image, load_features() if features is None else features
    project = read_project(checkout)
    enabled_names = enabled_features(manifest, all_features)
    return LockInputs(
        source=image.source,
        suite=image.suite,
        python=suite_by_name(image.suite).python,
        systems=_systems(image.systems or (host_system(), *_locked_systems(lock)), systems),
        features={name: _requested_packages(all_features[name]) for name in enabled_names},
        extra_packages=tuple(sorted(image.extra_packages)),
        requirements=project.runtime,
        unused_requirements=project.unused,
        skills=shipped_digests() if skills is None else skills,
    )


def manifest_skills(manifest: Manifest) -> dict[str, str]:
    """The digest of each skill that a manifest can select. Raises SkillError."""
    return digests(folders_of(manifest))


def folders_of(manifest: Manifest) -> dict[str, Path]:
    """Their folders by name. Raises SkillError."""
    paths = manifest.usable.skills.corpus.paths
    return skill_folders(manifest_directories(paths, Path(manifest.name)))


def own_skills(manifest: Manifest) -> tuple[Path, ...]:
    """The folders of those that are the manifest's own. Raises SkillError."""
    shipped = shipped_folders()
    return tuple(path for name, path in folders_of(manifest).items() if name not in shipped)


def debian_lists(inputs: LockInputs) -> dict[str, tuple[str, ...]]:
    """Return Debian names by feature; those of the manifest count as core's."""
    lists = {name: requested.debian for name, requested in inputs.features.items()}
    return {**lists, CORE: (*lists.get(CORE, ()), *inputs.extra_packages)}


def unused_debian(inputs: LockInputs) -> dict[str, tuple[str, ...]]:
    """Return, per Debian package, the dependencies that no enabled feature uses."""
    merged: dict[str, set[str]] = {}
    for requested in inputs.features.values():
        for package, dependencies in requested.unused_dependencies.items():
            merged.setdefault(package, set()).update(dependencies)
    return {package: tuple(sorted(dependencies)) for package, dependencies in merged.items()}


def python_lists(inputs: LockInputs) -> dict[str, tuple[str, ...]]:
    """Return Python requirements by feature; the application's own are core's."""
    lists = {name: requested.pypi for name, requested in inputs.features.items()}
    return {**lists, CORE: (*lists.get(CORE, ()), *inputs.requirements)}


def _systems(configured: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    if unknown := sorted({*configured, *added} - set(SYSTEMS)):
        raise ResolveError(
            f"cannot lock for {unknown[0]}: images exist for {' and '.join(SYSTEMS)}"
        )
    return tuple(sorted({*configured, *added}))


def _locked_systems(lock: Path | None) -> tuple[str, ...]:
    try:
        return read_lock(lock).systems if lock is not None else ()
    except LockError:
        return ()


def read_lock(path: Path) -> Lock:
    """As `parse_lock`, once for each content: the stages of one command all need it."""
    try:
        data = path.read_bytes()
    except OSError:
        return parse_lock(path)  # says what is wrong with the file
    return _parsed(data, str(path))


@lru_cache(maxsize=4)
def _parsed(data: bytes, name: str) -> Lock:
    return parse_lock(data, name)


def _requested_packages(feature: Feature) -> RequestedPackages:
    return RequestedPackages(
        debian=tuple(sorted(feature.debian)),
        pypi=tuple(sorted(feature.pypi)),
        npm=tuple(sorted(feature.npm)),
        npm_scripts_ignored=feature.npm_scripts_ignored,
        npm_optional_ignored=feature.npm_optional_ignored,
        unused_dependencies=feature.unused_dependencies,
    )

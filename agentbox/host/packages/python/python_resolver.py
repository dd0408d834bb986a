"""Python packages of the image: the same versions for all architectures if wheels allow it, none
built from source.
"""

from collections.abc import Mapping, Sequence

from packaging.requirements import Requirement

from agentbox.host.packages.apt.suite_versions import SuiteVersions
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.closure import reachable, resolve_closure
from agentbox.host.packages.python.index import Index, IndexFile
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.python.pip_report import ResolvedWheel
from agentbox.host.packages.python.target import Target
from agentbox.plan.lockfile.model import WheelEntry
from agentbox.plan.lockfile.names import store_name


def resolve(
    index: Index,
    suite: SuiteVersions,
    archs: Sequence[str],
    requested: Mapping[str, Sequence[str]],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> tuple[WheelEntry, ...]:
    """Return the rows for the requirements of all features. Raises ResolveError (exit 5),
    FetchError (exit 4).
    """
    rows: dict[str, WheelEntry] = {}
    all_requirements = sorted({text for listed in requested.values() for text in listed})
    if not all_requirements:
        return ()
    for arch in archs:
        target = Target(suite.python, arch, suite.glibc_minor)
        resolved = resolve_closure(pip_config(), index, target, all_requirements, pins, unused)
        for feature, listed in sorted(requested.items()):
            for name in reachable(resolved, [Requirement(text) for text in listed], target):
                _add_wheel(rows, index, resolved[name], arch, feature)
        pins = {**pins, **{name: wheel.version for name, wheel in resolved.items()}}
    return tuple(sorted(rows.values()))


def served_file(index: Index, name: str, file: str) -> IndexFile:
    """Return the main index's record of a file. Raises ResolveError if it does not serve it."""
    entry = index.files(name).get(file)
    if entry is None or not entry.sha256:
        raise ResolveError(
            f"cannot lock {file}: the main package index does not serve it with a SHA-256"
        )
    return entry


def _add_wheel(
    rows: dict[str, WheelEntry], index: Index, wheel: ResolvedWheel, arch: str, feature: str
) -> None:
    existing = rows.get(wheel.file)
    if existing is not None:
        archs, features = {*existing.arch, arch}, {*existing.features, feature}
        size, sha256 = existing.size, existing.sha256
    else:
        archs, features = {arch}, {feature}
        entry = served_file(index, wheel.name, wheel.file)
        size, sha256 = index.file_size(entry), entry.sha256
    rows[wheel.file] = WheelEntry(
        name=wheel.name,
        version=wheel.version,
        file=store_name(wheel.file),
        size=size,
        sha256=sha256,
        arch=tuple(sorted(archs)),
        features=tuple(sorted(features)),
    )

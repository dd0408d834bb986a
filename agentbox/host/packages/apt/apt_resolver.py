"""Debian packages: from lists of names to the closure to unpack, with the features that need each
package.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.control import Package, parse_package, parse_paragraphs
from agentbox.host.packages.errors import ResolveError
from agentbox.plan.lockfile.model import DebEntry, LockEntry
from agentbox.plan.lockfile.names import store_name

_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S*\] )?\((\S+) ", re.MULTILINE)


def resolve(
    root: AptRoot,
    requested: Mapping[str, Sequence[str]],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> tuple[DebEntry, ...]:
    """Return the rows of one architecture for the lists of all features. `pins` are kept while they
    are served and fit.

    Dependencies in `unused` (per package) are left out, with what only they need.

    The root is locked and updated. Raises ResolveError (exit 5) for an unknown name or a list that
    cannot be satisfied.
    """
    names = sorted({name for listed in requested.values() for name in listed})
    closure = _closure(root, names, pins)
    pruned = {
        name: _without_dependencies(package, unused.get(name, ()))
        for name, package in closure.items()
    }
    dropped = reachable(closure, names) - reachable(pruned, names)
    required_by = {feature: reachable(pruned, listed) for feature, listed in requested.items()}
    rows = []
    for package in (package for name, package in closure.items() if name not in dropped):
        features = tuple(
            sorted(feature for feature, names in required_by.items() if package.name in names)
        )
        rows.append(_deb_entry(package, features or ("core",)))
    return tuple(sorted(rows))


def package_records(root: AptRoot, names: Sequence[str]) -> list[Package]:
    """Return the archive's records of exactly these packages (`name` = the version that apt would
    choose). The root is locked.
    """
    result = root.show(["--no-all-versions", *names]) if names else None
    if result is None:
        return []
    if result.code != 0:
        raise ResolveError(
            f"cannot resolve Debian packages for {root.arch}: {result.reason}",
            "Fix the feature's list.",
        )
    unique: dict[tuple[str, str], Package] = {}
    for fields in parse_paragraphs(result.out):
        record = parse_package(fields)
        unique.setdefault((record.name, record.version), record)
    return list(unique.values())


def lock_entry(package: Package) -> LockEntry:
    """Return the row of a package without features, as in the seed."""
    file = store_name(f"{package.name}_{package.version}_{package.arch}.deb")
    return LockEntry(
        name=package.name,
        version=package.version,
        file=file,
        size=package.size,
        sha256=package.sha256,
    )


def reachable(closure: Mapping[str, Package], names: Iterable[str]) -> frozenset[str]:
    """Return the packages of a closure that these names need, following every alternative that is
    in it.
    """
    providers: dict[str, list[str]] = {}
    for package in closure.values():
        for virtual in (package.name, *package.provides):
            providers.setdefault(virtual, []).append(package.name)
    seen: set[str] = set()
    todo = [real for name in names for real in providers.get(name, ())]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [
                real
                for group in closure[name].depends
                for other in group
                for real in providers.get(other, ())
            ]
    return frozenset(seen)


def _without_dependencies(package: Package, unused: Sequence[str]) -> Package:
    return replace(
        package, depends=tuple(group for group in package.depends if not set(group) & set(unused))
    )


def _closure(root: AptRoot, names: Sequence[str], pins: Mapping[str, str]) -> dict[str, Package]:
    root.pin(pins)
    result = root.apt_get("install", "--simulate", *names)
    if result.code != 0 and pins:
        # A pinned version may no longer fit: then all versions are those of the mirror.
        root.pin({})
        result = root.apt_get("install", "--simulate", *names)
    if result.code != 0:
        raise ResolveError(
            f"cannot resolve Debian packages for {root.arch}: {result.reason}",
            "Fix image.extra_packages in the manifest, or the list of the feature that contains "
            "it.",
        )
    versions = [
        f"{name.partition(':')[0]}={version}" for name, version in _INSTALLED.findall(result.out)
    ]
    return {package.name: package for package in package_records(root, versions)}


def _deb_entry(package: Package, features: tuple[str, ...]) -> DebEntry:
    base = lock_entry(package)
    return DebEntry(
        name=base.name,
        version=base.version,
        file=base.file,
        size=base.size,
        sha256=base.sha256,
        features=features,
    )

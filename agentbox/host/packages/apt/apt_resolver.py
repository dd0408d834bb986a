"""Debian packages: from lists of names to the closure that must be unpacked, and who asked for what."""

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
    """The rows of one architecture for the lists of every feature. `pins` are kept where they are served and fit.

    What only the dependencies named by `unused` (per package) would bring is left out.

    The root is held and updated. Raises ResolveError (exit 5) for a name that does not exist or a list that does not
    fit together.
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
    for found in (found for name, found in closure.items() if name not in dropped):
        features = tuple(
            sorted(feature for feature, names in required_by.items() if found.name in names)
        )
        rows.append(_deb_entry(found, features or ("core",)))
    return tuple(sorted(rows))


def package_records(root: AptRoot, names: Sequence[str]) -> list[Package]:
    """The archive's records of exactly these packages (`name` = the version apt would take). The root is held."""
    result = root.show(["--no-all-versions", *names]) if names else None
    if result is None:
        return []
    if result.code != 0:
        raise ResolveError(
            f"cannot resolve Debian packages for {root.arch}: {result.reason}",
            "Mend the feature's list.",
        )
    unique: dict[tuple[str, str], Package] = {}
    for fields in parse_paragraphs(result.out):
        record = parse_package(fields)
        unique.setdefault((record.name, record.version), record)
    return list(unique.values())


def lock_entry(package: Package) -> LockEntry:
    """The row of a package without features, as the seed has it."""
    file = store_name(f"{package.name}_{package.version}_{package.arch}.deb")
    return LockEntry(
        name=package.name,
        version=package.version,
        file=file,
        size=package.size,
        sha256=package.sha256,
    )


def reachable(closure: Mapping[str, Package], names: Iterable[str]) -> frozenset[str]:
    """The packages of a closure that these names need, following every alternative that is in it."""
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
        # A kept version may no longer fit the others: then all are taken as the mirror has them.
        root.pin({})
        result = root.apt_get("install", "--simulate", *names)
    if result.code != 0:
        raise ResolveError(
            f"cannot resolve Debian packages for {root.arch}: {result.reason}",
            "Mend image.extra_packages in the manifest, or the list of the feature that names it.",
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

"""Debian packages: from lists of names to the closure that must be unpacked, and who asked for what."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.control import Package, package, paragraphs
from agentbox.host.packages.errors import ResolveError
from agentbox.plan.lockfile.model import DebEntry, Entry
from agentbox.plan.lockfile.names import store_name

_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S*\] )?\((\S+) ", re.MULTILINE)


def resolve(
    root: AptRoot,
    wanted: Mapping[str, Sequence[str]],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> tuple[DebEntry, ...]:
    """The rows of one architecture for the lists of every feature. `pins` are kept where they are served and fit.

    What only the dependencies named by `unused` (per package) would bring is left out.

    The root is held and updated. Raises ResolveError (exit 5) for a name that does not exist or a list that does not
    fit together.
    """
    names = sorted({name for listed in wanted.values() for name in listed})
    closure = _closure(root, names, pins)
    needed = {name: _without(found, unused.get(name, ())) for name, found in closure.items()}
    dropped = reached(closure, names) - reached(needed, names)
    asked_by = {feature: reached(needed, listed) for feature, listed in wanted.items()}
    rows = []
    for found in (found for name, found in closure.items() if name not in dropped):
        features = tuple(sorted(feature for feature, names in asked_by.items() if found.name in names))
        rows.append(_row(found, features or ("core",)))
    return tuple(sorted(rows))


def records(root: AptRoot, names: Sequence[str]) -> list[Package]:
    """The archive's records of exactly these packages (`name` = the version apt would take). The root is held."""
    shown = root.show(["--no-all-versions", *names]) if names else None
    if shown is None:
        return []
    if shown.code != 0:
        raise ResolveError(f"cannot resolve Debian packages for {root.arch}: {shown.why}", "Mend the feature's list.")
    found: dict[tuple[str, str], Package] = {}
    for fields in paragraphs(shown.out):
        record = package(fields)
        found.setdefault((record.name, record.version), record)
    return list(found.values())


def entry(found: Package) -> Entry:
    """The row of a package without features, as the seed has it."""
    file = store_name(f"{found.name}_{found.version}_{found.arch}.deb")
    return Entry(name=found.name, version=found.version, file=file, size=found.size, sha256=found.sha256)


def reached(closure: Mapping[str, Package], names: Iterable[str]) -> frozenset[str]:
    """The packages of a closure that these names need, following every alternative that is in it."""
    provided: dict[str, list[str]] = {}
    for found in closure.values():
        for virtual in (found.name, *found.provides):
            provided.setdefault(virtual, []).append(found.name)
    seen: set[str] = set()
    todo = [real for name in names for real in provided.get(name, ())]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [real for group in closure[name].depends for other in group for real in provided.get(other, ())]
    return frozenset(seen)


def _without(found: Package, unused: Sequence[str]) -> Package:
    return replace(found, depends=tuple(group for group in found.depends if not set(group) & set(unused)))


def _closure(root: AptRoot, names: Sequence[str], pins: Mapping[str, str]) -> dict[str, Package]:
    root.pin(pins)
    done = root.get("install", "--simulate", *names)
    if done.code != 0 and pins:
        # A kept version may no longer fit the others: then all are taken as the mirror has them.
        root.pin({})
        done = root.get("install", "--simulate", *names)
    if done.code != 0:
        raise ResolveError(
            f"cannot resolve Debian packages for {root.arch}: {done.why}",
            "Mend image.extra_packages in the manifest, or the list of the feature that names it.",
        )
    chosen = [f"{name.partition(':')[0]}={version}" for name, version in _INSTALLED.findall(done.out)]
    return {found.name: found for found in records(root, chosen)}


def _row(found: Package, features: tuple[str, ...]) -> DebEntry:
    plain = entry(found)
    return DebEntry(
        name=plain.name,
        version=plain.version,
        file=plain.file,
        size=plain.size,
        sha256=plain.sha256,
        features=features,
    )

"""Python packages of the image: one set of versions for all architectures where wheels allow it, none built here."""

from collections.abc import Mapping, Sequence

from packaging.requirements import Requirement

from agentbox.host.packages.apt.suites import Suite
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.closure import close, reached
from agentbox.host.packages.python.index import Index, IndexFile
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.python.pip_report import Chosen
from agentbox.host.packages.python.target import Target
from agentbox.plan.lockfile.model import WheelEntry
from agentbox.plan.lockfile.names import store_name


def resolve(
    index: Index,
    suite: Suite,
    archs: Sequence[str],
    wanted: Mapping[str, Sequence[str]],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> tuple[WheelEntry, ...]:
    """The rows for the requirements of every feature. Raises ResolveError (exit 5), FetchError (exit 4)."""
    rows: dict[str, WheelEntry] = {}
    everything = sorted({text for listed in wanted.values() for text in listed})
    if not everything:
        return ()
    for arch in archs:
        target = Target(suite.python, arch, suite.glibc_minor)
        found = close(pip_config(), index, target, everything, pins, unused)
        for feature, listed in sorted(wanted.items()):
            for name in reached(found, [Requirement(text) for text in listed], target):
                _note(rows, index, found[name], arch, feature)
        pins = {**pins, **{name: chosen.version for name, chosen in found.items()}}
    return tuple(sorted(rows.values()))


def served(index: Index, name: str, file: str) -> IndexFile:
    """The main index's own record of a file. Raises ResolveError when it does not serve it."""
    found = index.files(name).get(file)
    if found is None or not found.sha256:
        raise ResolveError(f"cannot lock {file}: the main package index does not serve it with a SHA-256")
    return found


def _note(rows: dict[str, WheelEntry], index: Index, chosen: Chosen, arch: str, feature: str) -> None:
    old = rows.get(chosen.file)
    if old is not None:
        archs, features = {*old.arch, arch}, {*old.features, feature}
        size, sha256 = old.size, old.sha256
    else:
        archs, features = {arch}, {feature}
        found = served(index, chosen.name, chosen.file)
        size, sha256 = index.sized(found), found.sha256
    rows[chosen.file] = WheelEntry(
        name=chosen.name,
        version=chosen.version,
        file=store_name(chosen.file),
        size=size,
        sha256=sha256,
        arch=tuple(sorted(archs)),
        features=tuple(sorted(features)),
    )

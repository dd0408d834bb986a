"""The rows of a lock that a build needs: the image's architecture, and the build tools of the
building machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, Lock, LockEntry

BUILD = "build"


@dataclass(frozen=True)
class RequiredFile:
    """A file to fetch. `source` is `debian`, `wheels` or `npm`; `arch` is that of its table, for
    Debian.
    """

    source: str
    arch: str
    entry: LockEntry


def required_files(lock: Lock, system: str, host: str) -> tuple[RequiredFile, ...]:
    """Return the files of an image for `system` built on a machine of system `host`, without
    duplicates, sorted by source and name.
    """
    by_file: dict[str, RequiredFile] = {}
    for item in _all_files(lock, ARCH_OF_SYSTEM[system], ARCH_OF_SYSTEM[host]):
        by_file.setdefault(item.entry.file, item)
    return tuple(
        sorted(
            by_file.values(),
            key=lambda item: (item.source, item.arch, item.entry.name, item.entry.file),
        )
    )


def _all_files(lock: Lock, arch: str, host_arch: str) -> Iterator[RequiredFile]:
    if (seed := lock.seed.get(host_arch)) is not None:
        yield from (RequiredFile("debian", host_arch, row) for row in seed.files)
    yield from (RequiredFile("debian", arch, row) for row in lock.debian.get(arch, ()))
    yield from (
        RequiredFile("debian", host_arch, row)
        for row in lock.debian.get(host_arch, ())
        if BUILD in row.features
    )
    for wheel in lock.wheels:
        if arch in wheel.arch or (host_arch in wheel.arch and BUILD in wheel.features):
            yield RequiredFile("wheels", "", wheel)
    yield from (RequiredFile("npm", "", row) for row in lock.npm if arch in row.arch)

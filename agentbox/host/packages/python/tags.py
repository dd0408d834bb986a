"""The wheels that a target can install."""

from functools import cache

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from agentbox.host.packages.python.index import Index, IndexFile
from agentbox.host.packages.python.target import Target


def installable(index: Index, target: Target, name: str, version: str) -> list[IndexFile]:
    """Return the wheels of one version that the target's pip accepts; empty if there is none."""
    return [
        row
        for row in index.files(name).values()
        if row.sha256 and _is_installable(row.file, target, name, version)
    ]


def _is_installable(file: str, target: Target, name: str, version: str) -> bool:
    try:
        project, wheel_version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False  # an sdist
    return (
        project == canonicalize_name(name)
        and wheel_version == Version(version)
        and not tags.isdisjoint(_tags(target))
    )


@cache
def _tags(target: Target) -> frozenset[Tag]:
    major, minor = (int(number) for number in target.python.split("."))
    platforms = list(target.platforms)
    native = cpython_tags((major, minor), platforms=platforms)
    return frozenset([*native, *compatible_tags((major, minor), f"cp{major}{minor}", platforms)])

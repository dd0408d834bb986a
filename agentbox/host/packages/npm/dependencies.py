"""Which package of an npm lock file meets which dependency, as Node looks it up."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

MODULES: Final = "node_modules/"


def find_package(path: str, name: str, packages: Mapping[str, Any]) -> str:
    """The path of the package that `name` is for the one at `path`; "" if there is none."""
    places = (f"{prefix}{MODULES}{name}" for prefix in _lookup_prefixes(path))
    return next((place for place in places if place in packages), "")


def needed_paths(directories: Sequence[str], packages: Mapping[str, Any]) -> list[str]:
    """Paths of what is in these directories and of all that they require, in order; without
    packages that are optional for those that name them. `packages`: of the lock file, by path."""
    waiting = [f"{MODULES}{directory}" for directory in directories]
    found: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        places = (find_package(path, name, packages) for name in _required(packages[path]))
        waiting += [place for place in places if place]
    return sorted(found)


def _required(row: Mapping[str, Any]) -> Iterator[str]:
    yield from row.get("dependencies", {})
    chosen = row.get("peerDependenciesMeta", {})
    for name in row.get("peerDependencies", {}):
        if not chosen.get(name, {}).get("optional"):
            yield name


def _lookup_prefixes(path: str) -> Iterator[str]:
    """Yield the prefixes where Node looks for a dependency: below the package, then below each
    package that contains it.
    """
    while path:
        yield f"{path}/"
        path = path.rpartition(MODULES)[0].rstrip("/")
    yield ""

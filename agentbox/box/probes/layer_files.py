"""What the image's records say that each layer holds, and what is there. Standard library only: Stage A reads it.

A record is `share/files/<layer>.json`: the files of each package with their sizes in bytes. The process engine has none.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

AT_BOOT = 500  # files whose sizes a boot compares; the deep probe compares all
# In the order in which a box needs them: loaders and the C library, interpreters, its own code.
_FIRST = tuple(
    map(
        re.compile,
        (
            r"/usr/lib/[^/]+/(ld-linux|libc\.|libm\.|libpthread|libdl)",
            r"/usr/bin/(python3|bash|dash|sh|env)|/opt/agentbox/venv/bin/",
            r"/opt/agentbox/venv/lib/[^/]+/site-packages/agentbox/(boot|probes|plan|supervision|core)/",
            r"/opt/agentbox/venv/lib/[^/]+/site-packages/agentbox/",
        ),
    )
)

Recorded = Mapping[str, int]
"""Path in the box -> size in bytes."""


def recorded(paths: Paths) -> dict[str, int]:
    """Every file of every layer; empty without records."""
    found: dict[str, int] = {}
    for record in sorted(paths.layer_files.glob("*.json")):
        for package in json.loads(record.read_bytes())["packages"].values():
            found |= package["files"]
    return found


def needed_first(files: Recorded, most: int = AT_BOOT) -> dict[str, int]:
    """At most `most` of the files, those that a boot needs first."""
    ranked = chain.from_iterable((path for path in files if rank.match(path)) for rank in _FIRST)
    chosen = dict.fromkeys(chain(ranked, files))
    return {path: files[path] for path in islice(chosen, most)}


def faults(paths: Paths, files: Recorded) -> list[tuple[str, str]]:
    """Path and reason of each file that is missing or has another size."""
    folders: dict[str, dict[str, int]] = {}
    for path, size in files.items():
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, {})[name] = size
    root = str(paths.prefix).rstrip("/")
    return [fault for folder, sizes in folders.items() for fault in _folder_faults(root, folder, sizes)]


def check_layer_files(_probe: Probe, paths: Paths, _seconds: float) -> str:
    """Kind `layer-files`: the first fault of all files, and how many there are."""
    found = faults(paths, recorded(paths))
    if not found:
        return ""
    path, reason = found[0]
    return f"{path} {reason}" + (f", and {len(found) - 1} more" if found[1:] else "")


def _folder_faults(root: str, folder: str, sizes: Recorded) -> Iterator[tuple[str, str]]:
    """By name below an open folder: the kernel walks the way to it once, not once a file."""
    try:
        below = os.open(f"{root}{folder}/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield from _reasons(folder, sizes, dict.fromkeys(sizes))
        return
    try:
        found = {name: _size(name, below) for name in sizes}
    finally:
        os.close(below)
    yield from _reasons(folder, sizes, found)


def _reasons(folder: str, sizes: Recorded, found: Mapping[str, int | None]) -> Iterable[tuple[str, str]]:
    for name, size in sizes.items():
        if found[name] is None:
            yield f"{folder}/{name}", "is missing"
        elif found[name] != size:
            yield f"{folder}/{name}", f"has {found[name]} bytes, the image was built with {size}"


def _size(name: str, below: int) -> int | None:
    try:
        return os.stat(name, dir_fd=below, follow_symlinks=False).st_size
    except OSError:
        return None

"""Compares the image's file records with the existing files. Standard library only: Stage A uses
it.

A record is `share/files/<layer>.json`: the files of each package with their sizes in bytes. The
process engine has none.
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
            r"/opt/agentbox/venv/lib/[^/]+/site-packages/agentbox/(box|plan|core)/",
            r"/opt/agentbox/venv/lib/[^/]+/site-packages/agentbox/",
        ),
    )
)

FileSizes = Mapping[str, int]
"""Path in the box -> size in bytes."""


def recorded_files(paths: Paths) -> dict[str, int]:
    """All files of all layers; empty without records."""
    files: dict[str, int] = {}
    for record in sorted(paths.layer_files.glob("*.json")):
        for package in json.loads(record.read_bytes())["packages"].values():
            files |= package["files"]
    return files


def boot_files(files: FileSizes, maximum: int = AT_BOOT) -> dict[str, int]:
    """At most `maximum` of the files, those that a boot needs first."""
    ranked = chain.from_iterable((path for path in files if rank.match(path)) for rank in _FIRST)
    ordered = dict.fromkeys(chain(ranked, files))
    return {path: files[path] for path in islice(ordered, maximum)}


def file_faults(paths: Paths, files: FileSizes) -> list[tuple[str, str]]:
    """Path and reason of each file that is missing or has another size."""
    directories: dict[str, dict[str, int]] = {}
    for path, size in files.items():
        directory, _, name = path.rpartition("/")
        directories.setdefault(directory, {})[name] = size
    root = str(paths.prefix).rstrip("/")
    return [
        fault
        for directory, sizes in directories.items()
        for fault in _directory_faults(root, directory, sizes)
    ]


def check_layer_files(_probe: Probe, paths: Paths, _seconds: float) -> str:
    """Kind `layer-files`: the first fault of all files, and their number."""
    problems = file_faults(paths, recorded_files(paths))
    if not problems:
        return ""
    path, reason = problems[0]
    return f"{path} {reason}" + (f", and {len(problems) - 1} more" if problems[1:] else "")


def _directory_faults(root: str, directory: str, sizes: FileSizes) -> Iterator[tuple[str, str]]:
    """Checks by name relative to an open directory: the kernel resolves the path once instead of
    once per file.
    """
    try:
        descriptor = os.open(f"{root}{directory}/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield from _reasons(directory, sizes, dict.fromkeys(sizes))
        return
    try:
        actual = {name: _size(name, descriptor) for name in sizes}
    finally:
        os.close(descriptor)
    yield from _reasons(directory, sizes, actual)


def _reasons(
    directory: str, sizes: FileSizes, actual: Mapping[str, int | None]
) -> Iterable[tuple[str, str]]:
    for name, size in sizes.items():
        if actual[name] is None:
            yield f"{directory}/{name}", "is missing"
        elif actual[name] != size:
            yield (
                f"{directory}/{name}",
                f"has {actual[name]} bytes, the image was built with {size}",
            )


def _size(name: str, descriptor: int) -> int | None:
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size
    except OSError:
        return None

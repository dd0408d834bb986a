"""The steps of `agentbox verify` that need no running box, each a function that ends in one `Step`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentbox.core.canonical import file_sha256
from agentbox.host.image.verify.compare import Difference, first_of_images
from agentbox.host.image.verify.members import Archive
from agentbox.host.packages.store.nixstore import flat_path, recursive_path
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, Entry, Lock

_SHOWN = 12
_CONFIG = "config"


@dataclass(frozen=True)
class Step:
    """One line of the report. `absent`: there was nothing to compare with, which is said and is no difference."""

    name: str
    outcome: Literal["same", "different", "absent"]
    said: str

    @classmethod
    def of(cls, name: str, difference: Difference | str | None, same: str) -> "Step":
        """`different` with the difference, else `same`."""
        return cls(name, "different", str(difference)) if difference else cls(name, "same", same)


def rows_of(lock: Lock, system: str) -> list[Entry]:
    """The rows that an image of this system is made of, less the seed, which is stored unpacked."""
    arch = ARCH_OF_SYSTEM[system]
    shared = [row for table in (lock.wheels, lock.npm) for row in table if arch in row.arch]
    return [*lock.debian[arch], *shared]


def check_rows(lock: Lock, system: str) -> Step:
    """Every locked file in the store has the locked size and SHA-256; so has the seed its recursive hash in its name."""
    rows = rows_of(lock, system)
    seed = recursive_path(lock.seed[ARCH_OF_SYSTEM[system]], "busybox")
    wrong = next((why for row in rows if (why := _wrong(row, Path(flat_path(row))))), None)
    if wrong is None and not Path(seed).is_dir():
        wrong = f"{seed}: present != missing"
    return Step.of("lock", wrong, f"{len(rows)} files of the lock")


def _wrong(row: Entry, file: Path) -> str | None:
    if not file.is_file():
        return f"{row.file}: present != missing"
    if (size := file.stat().st_size) != row.size:
        return f"{row.file}: size {row.size} != {size}"
    if (found := file_sha256(file)) != row.sha256:
        return f"{row.file}: sha256 {row.sha256[:_SHOWN]}… != {found[:_SHOWN]}…"
    return None


def check_rendered(rendered: Mapping[str, bytes], archive: Archive) -> Step:
    """The files of layer `config` are what this manifest and this lock render to now."""
    members = archive.members(archive.names.index(_CONFIG))
    for path, data in sorted(rendered.items()):
        held = members.get(path.lstrip("/"))
        found = held.sha256 if held else ""
        if (expected := hashlib.sha256(data).hexdigest()) != found:
            what = "sha256" if held else ""
            return Step.of(
                "render", Difference("layer config", path.lstrip("/"), what, expected, found or "missing"), ""
            )
    return Step("render", "same", f"{len(rendered)} files of layer config")


def check_folder(rendered: Mapping[str, bytes], folder: Path) -> Step:
    """The compose folder holds what the record of the box renders to now."""
    for name, data in sorted(rendered.items()):
        file = folder / name
        found = file_sha256(file) if file.is_file() else ""
        if (expected := hashlib.sha256(data).hexdigest()) != found:
            return Step.of(
                "compose", Difference(str(folder), name, "sha256" if found else "", expected, found or "missing"), ""
            )
    return Step("compose", "same", f"{len(rendered)} files in {folder}")


def check_blobs(archive: Archive) -> Step:
    """Every blob of the archive has the digest that is its name."""
    damaged = next(archive.damaged_blobs(), None)
    return Step.of("blobs", damaged, "every blob of the archive has its digest")


def against(archive: Archive, file: Path) -> Step:
    """Two archives, path by path."""
    other = Archive(file)
    try:
        return Step.of("image", first_of_images(archive, other), archive.image_id)
    finally:
        other.close()


def check_chain(expected: Mapping[str, str], found: Mapping[str, str | None], where: str) -> Step:
    """The digests that a running box states of itself."""
    for name in sorted(expected):
        if expected[name] != found.get(name):
            return Step.of("box", Difference(where, name, "digest", expected[name], found.get(name) or ""), "")
    return Step("box", "same", f"{', '.join(sorted(expected))} in {where}")

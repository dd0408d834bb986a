"""The steps of `agentbox verify` that need no running box, each a function that returns a
`VerifyStep`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentbox.core.canonical import file_sha256
from agentbox.core.paths import Paths
from agentbox.host.image.verify.compare import Difference, first_image_difference
from agentbox.host.image.verify.members import Archive
from agentbox.host.packages.store.nix_store import flat_path, recursive_path
from agentbox.manifest.skills.skill import rows_digest
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, Lock, LockEntry

_DIGEST_CHARS = 12
_CONFIG = "config"


@dataclass(frozen=True)
class VerifyStep:
    """A line of the report. `absent`: there was nothing to compare with, which is not a
    difference.
    """

    name: str
    outcome: Literal["same", "different", "absent"]
    said: str

    @classmethod
    def from_difference(
        cls, name: str, difference: Difference | str | None, summary: str
    ) -> "VerifyStep":
        """Return `different` with the difference, else `same`."""
        return cls(name, "different", str(difference)) if difference else cls(name, "same", summary)


def lock_rows(lock: Lock, system: str) -> list[LockEntry]:
    """Return the rows of an image of this system, without the seed, which is stored unpacked."""
    arch = ARCH_OF_SYSTEM[system]
    shared = [row for table in (lock.wheels, lock.npm) for row in table if arch in row.arch]
    return [*lock.debian[arch], *shared]


def check_rows(lock: Lock, system: str) -> VerifyStep:
    """Every locked file in the store has the locked size and SHA-256; the name of the seed has its
    recursive hash.
    """
    rows = lock_rows(lock, system)
    seed = recursive_path(lock.seed[ARCH_OF_SYSTEM[system]], "busybox")
    difference = next(
        (problem for row in rows if (problem := _row_problem(row, Path(flat_path(row))))), None
    )
    if difference is None and not Path(seed).is_dir():
        difference = f"{seed}: present != missing"
    return VerifyStep.from_difference("lock", difference, f"{len(rows)} files of the lock")


def _row_problem(row: LockEntry, file: Path) -> str | None:
    if not file.is_file():
        return f"{row.file}: present != missing"
    if (size := file.stat().st_size) != row.size:
        return f"{row.file}: size {row.size} != {size}"
    if (actual := file_sha256(file)) != row.sha256:
        return f"{row.file}: sha256 {row.sha256[:_DIGEST_CHARS]}… != {actual[:_DIGEST_CHARS]}…"
    return None


def check_rendered(rendered: Mapping[str, bytes], archive: Archive) -> VerifyStep:
    """The files of layer `config` equal the current rendering of this manifest and lock."""
    members = archive.members(archive.names.index(_CONFIG))
    for path, data in sorted(rendered.items()):
        member = members.get(path.lstrip("/"))
        actual = member.sha256 if member else ""
        if (expected := hashlib.sha256(data).hexdigest()) != actual:
            attribute = "sha256" if member else ""
            return VerifyStep.from_difference(
                "render",
                Difference(
                    "layer config", path.lstrip("/"), attribute, expected, actual or "missing"
                ),
                "",
            )
    return VerifyStep("render", "same", f"{len(rendered)} files of layer config")


def check_skills(digests: Mapping[str, str], archive: Archive) -> VerifyStep:
    """The skills of the image are those of the lock: path, executable bit and SHA-256 of each
    file."""
    root = str(Paths().skills).lstrip("/") + "/"
    found: dict[str, list[tuple[str, bool, str]]] = {}
    for path, member in archive.members(archive.names.index(_CONFIG)).items():
        name, _, file = path.removeprefix(root).partition("/")
        if path.startswith(root) and member.type != "dir":
            row = (file, bool(int(member.mode, 8) & 0o100), member.sha256)
            found.setdefault(name, []).append(row)
    actual = {name: rows_digest(iter(rows)) for name, rows in found.items()}
    for name in sorted(digests.keys() | actual.keys()):
        if digests.get(name) != actual.get(name):
            return VerifyStep.from_difference(
                "skills",
                Difference(
                    "layer config",
                    root + name,
                    "digest",
                    digests.get(name, "missing"),
                    actual.get(name, "missing"),
                ),
                "",
            )
    return VerifyStep("skills", "same", f"{len(digests)} skills of the lock")


def check_directory(rendered: Mapping[str, bytes], directory: Path) -> VerifyStep:
    """The compose directory equals the rendering of the box's record."""
    for name, data in sorted(rendered.items()):
        file = directory / name
        actual = file_sha256(file) if file.is_file() else ""
        if (expected := hashlib.sha256(data).hexdigest()) != actual:
            return VerifyStep.from_difference(
                "compose",
                Difference(
                    str(directory), name, "sha256" if actual else "", expected, actual or "missing"
                ),
                "",
            )
    return VerifyStep("compose", "same", f"{len(rendered)} files in {directory}")


def check_blobs(archive: Archive) -> VerifyStep:
    """Every blob of the archive matches the digest in its name."""
    damaged = next(archive.damaged_blobs(), None)
    return VerifyStep.from_difference(
        "blobs", damaged, "every blob of the archive matches its digest"
    )


def compare_archives(archive: Archive, file: Path) -> VerifyStep:
    """Compares two archives, path by path."""
    other = Archive(file)
    try:
        return VerifyStep.from_difference(
            "image", first_image_difference(archive, other), archive.image_id
        )
    finally:
        other.close()


def check_digests(
    expected: Mapping[str, str], actual: Mapping[str, str | None], location: str
) -> VerifyStep:
    """Compares the digests that a running box reports."""
    for name in sorted(expected):
        if expected[name] != actual.get(name):
            return VerifyStep.from_difference(
                "box",
                Difference(location, name, "digest", expected[name], actual.get(name) or ""),
                "",
            )
    return VerifyStep("box", "same", f"{', '.join(sorted(expected))} in {location}")

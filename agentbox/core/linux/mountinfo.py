"""The mounts of this process: proc(5), `/proc/<pid>/mountinfo`. Standard library only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")
_PAGE_KIB = 4  # of every architecture that images are built for; the kernel rounds the size of a tmpfs up to it


@dataclass(frozen=True)
class Mount:
    """One mount. `flags` are of the mount itself (`ro`, `noexec`, …), `options` of its file system (`size=65536k`, …)."""

    target: str
    kind: str
    flags: frozenset[str]
    options: frozenset[str]

    @property
    def read_only(self) -> bool:
        return "ro" in self.flags or "ro" in self.options

    @property
    def size_kib(self) -> int | None:
        """Of a tmpfs with a size; None of anything else."""
        found = next((word.removeprefix("size=") for word in self.options if word.startswith("size=")), "")
        return int(found[:-1]) if found.endswith("k") else None


def mounts() -> dict[str, Mount]:
    """By target; where several lie on one another, the one on top. Raises OSError."""
    return parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))


def parse(text: str) -> dict[str, Mount]:
    """Raises ValueError for a line that is none of mountinfo."""
    found = {}
    for line in text.splitlines():
        own, _, system = line.partition(" - ")
        fields, (kind, _source, options) = own.split(" "), system.split(" ")[:3]
        target = _plain(fields[4])
        found[target] = Mount(target, kind, frozenset(fields[5].split(",")), frozenset(options.split(",")))
    return found


def holder(path: str, table: Mapping[str, Mount]) -> Mount | None:
    """The mount that a path lies on."""
    above = [target for target in table if path == target or path.startswith(f"{target.rstrip('/')}/")]
    return table[max(above, key=len)] if above else None


def tmpfs_kib(size: int) -> int:
    """What the kernel says of a tmpfs that was asked for with so many bytes."""
    return -(-size // (_PAGE_KIB << 10)) * _PAGE_KIB


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)

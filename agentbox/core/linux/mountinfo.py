"""The mounts of this process: proc(5), `/proc/<pid>/mountinfo`. Standard library only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")
_PAGE_KIB = 4  # on all supported architectures; the kernel rounds the size of a tmpfs up to it


@dataclass(frozen=True)
class Mount:
    """One mount. `flags` are those of the mount (`ro`, `noexec`, …), `options` those of its file
    system (`size=65536k`, …).
    """

    target: str
    kind: str
    flags: frozenset[str]
    options: frozenset[str]

    @property
    def read_only(self) -> bool:
        return "ro" in self.flags or "ro" in self.options

    @property
    def size_kib(self) -> int | None:
        """For a tmpfs with a size; else None."""
        size = next(
            (option.removeprefix("size=") for option in self.options if option.startswith("size=")),
            "",
        )
        return int(size[:-1]) if size.endswith("k") else None


def mounts() -> dict[str, Mount]:
    """Mounts by target, the topmost if several share one. Raises OSError."""
    return parse(Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))


def parse(text: str) -> dict[str, Mount]:
    """Parses mountinfo. Raises ValueError for an invalid line."""
    result = {}
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        fields, (kind, _source, options) = head.split(" "), tail.split(" ")[:3]
        target = _unescape(fields[4])
        result[target] = Mount(
            target, kind, frozenset(fields[5].split(",")), frozenset(options.split(","))
        )
    return result


def containing_mount(path: str, table: Mapping[str, Mount]) -> Mount | None:
    """The mount that contains a path."""
    parents = [
        target for target in table if path == target or path.startswith(f"{target.rstrip('/')}/")
    ]
    return table[max(parents, key=len)] if parents else None


def tmpfs_kib(size: int) -> int:
    """The size that the kernel reports for a tmpfs of so many bytes."""
    return -(-size // (_PAGE_KIB << 10)) * _PAGE_KIB


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)

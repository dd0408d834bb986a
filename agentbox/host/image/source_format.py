"""The format of the sources: UTF-8, LF, no trailing blanks, one newline at the end; the lock as its
writer formats it.

`python -m agentbox.host.image.source_format FOLDER OUT` checks a directory inside a derivation.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes

DIRECTORIES = ("agentbox", "config", "nix", "schema")
SUFFIXES = (".nix", ".py", ".sh", ".toml")
_LOCK = "agentbox.lock"


def source_files(root: Path) -> Iterator[Path]:
    """Return every file with a defined format, sorted by name."""
    inside = (path for directory in DIRECTORIES for path in (root / directory).rglob("*"))
    paths = [
        path for path in [*root.iterdir(), *inside] if path.suffix in SUFFIXES or path.name == _LOCK
    ]
    return iter(sorted(path for path in paths if path.is_file() and not path.is_symlink()))


def formatted(path: Path) -> bytes:
    """Return the formatted content. Raises AgentboxError for a damaged lock, UnicodeDecodeError for
    binary content.
    """
    if path.name == _LOCK:
        return lock_bytes(parse_lock(path))
    lines = [line.rstrip() for line in path.read_bytes().decode("utf-8").splitlines()]
    text = "\n".join(lines).rstrip("\n")
    return f"{text}\n".encode() if text else b""


def unformatted_files(root: Path) -> list[Path]:
    """Return the files that are not formatted."""
    return [path for path in source_files(root) if path.read_bytes() != formatted(path)]


def main(directory: str, out: str) -> None:
    """A directory without such files fails."""
    root = Path(directory)
    if unformatted := unformatted_files(root):
        sys.exit("\n".join(f"{path.relative_to(root)}: run agentbox fmt" for path in unformatted))
    count = sum(1 for _ in source_files(root))
    if not count:
        sys.exit("no files to check")
    Path(out).write_text(f"format: {count} files\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

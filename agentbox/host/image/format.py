"""The form of the sources: UTF-8, LF, no blanks at line ends, one newline at the end; the lock as its writer writes it.

`python -m agentbox.host.image.format FOLDER OUT` checks a folder inside a derivation.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from agentbox.plan.lockfile.reader import read
from agentbox.plan.lockfile.writer import write as lock_bytes

FOLDERS = ("agentbox", "config", "nix", "schema")
KINDS = (".nix", ".py", ".sh", ".toml")
_LOCK = "agentbox.lock"


def files(root: Path) -> Iterator[Path]:
    """Every file that has a form, sorted by name."""
    inside = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    found = [path for path in [*root.iterdir(), *inside] if path.suffix in KINDS or path.name == _LOCK]
    return iter(sorted(path for path in found if path.is_file() and not path.is_symlink()))


def formed(path: Path) -> bytes:
    """What the file should hold. Raises AgentboxError for a damaged lock, UnicodeDecodeError for what is no text."""
    if path.name == _LOCK:
        return lock_bytes(read(path))
    lines = [line.rstrip() for line in path.read_bytes().decode("utf-8").splitlines()]
    text = "\n".join(lines).rstrip("\n")
    return f"{text}\n".encode() if text else b""


def unformed(root: Path) -> list[Path]:
    """The files that are not as they should be."""
    return [path for path in files(root) if path.read_bytes() != formed(path)]


def main(folder: str, out: str) -> None:
    """A folder without such files passes nothing."""
    root = Path(folder)
    if wrong := unformed(root):
        sys.exit("\n".join(f"{path.relative_to(root)}: run agentbox fmt" for path in wrong))
    count = sum(1 for _ in files(root))
    if not count:
        sys.exit("there is no file to look at")
    Path(out).write_text(f"format: {count} files\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

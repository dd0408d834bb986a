"""Makes the repositories in which the confined program runs git: all of their files are ours."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

# git-config(1). A commit graph or a multi-pack index of the agent could tell of other parents or
# contents than the objects have; attributes could hide differences.
_CONFIG: Final = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tfsmonitor = false
\tcommitGraph = false
\tmultiPackIndex = false
\tlogAllRefUpdates = false
\tpackedGitWindowSize = 16m
\tpackedGitLimit = 256m
\tdeltaBaseCacheLimit = 32m
\tbigFileThreshold = 16m
[pack]
\tthreads = 1
\twindowMemory = 64m
\tuseBitmaps = false
[index]
\tthreads = 1
[fastimport]
\tunpackLimit = 0
[gc]
\tauto = 0
[maintenance]
\tauto = false
[protocol]
\tallow = never
"""
_FORMAT: Final = "[extensions]\n\tobjectFormat = {format}\n"
_ATTRIBUTES: Final = (
    "* !text !eol !diff !filter !ident !merge !working-tree-encoding -export-subst\n"
)


def create(directory: Path, object_format: str, alternates: Iterable[str]) -> None:
    """A bare repository that borrows the objects of these directories. Raises OSError."""
    for name in ("objects/info", "objects/pack", "refs/heads", "info"):
        (directory / name).mkdir(parents=True, mode=0o700)
    is_other = object_format != "sha1"
    config = _CONFIG.format(version=1 if is_other else 0)
    if is_other:
        config += _FORMAT.format(format=object_format)
    (directory / "config").write_text(config, encoding="ascii")
    (directory / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (directory / "info/attributes").write_text(_ATTRIBUTES, encoding="ascii")
    lines = "".join(f"{_quoted(path)}\n" for path in alternates)
    (directory / "objects/info/alternates").write_text(
        lines, encoding="utf-8", errors="surrogateescape"
    )


def _quoted(path: str) -> str:
    """A path with a quote at its beginning or a line break is quoted (gitrepository-layout(5))."""
    if not path.startswith('"') and "\n" not in path:
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

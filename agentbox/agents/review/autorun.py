"""Files that other programs run by themselves, by name or directory. Reviews list them first.

The list is not a security boundary: any source file runs once it is built or tested.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from agentbox.agents.review.autorun_patterns import AUTORUN_PATTERNS

IN_REPOSITORY: Final = "git runs programs of its config and hooks: a bare repository"


# Ignored by HFS+ in names (`next_hfs_char` in git's utf8.c).
_IGNORED: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def fold_name(name: str) -> str:
    """A common form for names that some file system treats as equal: some ignore case, HFS+ the
    characters above, NTFS dots and spaces at the end."""
    return _IGNORED.sub("", name).casefold().rstrip(". ")


def is_bare_repository(names: Iterable[str]) -> bool:
    """Whether git takes a directory with these names for a repository (`is_git_directory` in git's
    setup.c): `HEAD` with `objects` and `refs`, or with `commondir`."""
    folded_names = set(map(fold_name, names))
    return "head" in folded_names and (
        {"objects", "refs"} <= folded_names or "commondir" in folded_names
    )


def autorun_reason(path: str) -> str:
    """Why that file runs by itself; "" if nothing is known. Independent of how a file system spells
    the name."""
    folded_path = "/".join(map(fold_name, path.split("/")))
    name = folded_path.rpartition("/")[2]
    for reason, patterns in AUTORUN_PATTERNS.items():
        for pattern in patterns:
            if _matches(pattern, folded_path, name):
                return reason
    return ""


def _matches(pattern: str, path: str, name: str) -> bool:
    if pattern.endswith("/**"):
        directory = pattern[:-3]
        return any(
            fnmatchcase(
                "/".join(path.split("/")[start : start + directory.count("/") + 1]), directory
            )
            for start in _directory_starts(path)
        )
    if "/" in pattern:
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")
    return fnmatchcase(name, pattern)


def _directory_starts(path: str) -> range:
    """Positions where a directory of the path may start; the last part is no directory."""
    return range(path.count("/"))

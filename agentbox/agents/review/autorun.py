"""Files that other programs run by themselves, by name or directory. Reviews list them first.

The list is not a security boundary: any source file runs once it is built or tested.
"""

import re
from collections.abc import Iterable, Mapping
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
    return _reason(_PATHS, "/".join(map(fold_name, path.split("/"))))


def link_autorun_reason(path: str) -> str:
    """Why a link, or a file below it if it leads to a directory, runs by itself."""
    folded_name = fold_name(path.rpartition("/")[2])
    return _reason(_DIRECTORIES, folded_name) or autorun_reason(path)


def _reason(expressions: Mapping[str, re.Pattern[str]], text: str) -> str:
    return next((reason for reason, found in expressions.items() if found.search(text)), "")


def _path_expression(pattern: str) -> str:
    """A regular expression to search a complete path with."""
    if pattern.endswith("/**"):
        directory = pattern[:-3]
        return rf"(?:\A|/){_part(directory)}" + (r"(?:/|\Z)" if "/" in directory else "/")
    return rf"(?:\A|/){_part(pattern)}\Z"


def _part(pattern: str) -> str:
    """A pattern of `*`, which ends at a slash, and of characters that mean themselves."""
    return re.escape(pattern).replace(r"\*", "[^/]*")


def _any_of(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions), re.DOTALL)


_PATHS: Final = {
    reason: _any_of(map(_path_expression, patterns))
    for reason, patterns in AUTORUN_PATTERNS.items()
}
# Of names of directories in the patterns, by reason.
_DIRECTORIES: Final = {
    reason: _any_of(
        rf"\A{_part(name)}\Z" for pattern in patterns for name in pattern.split("/")[:-1]
    )
    for reason, patterns in AUTORUN_PATTERNS.items()
    if any("/" in pattern for pattern in patterns)
}

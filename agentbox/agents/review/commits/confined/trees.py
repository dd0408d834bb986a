"""Differences of trees, and what of them matters to marks of files that run by themselves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agentbox.agents.review.autorun import is_bare_repository
from agentbox.agents.review.commits.confined.git import Batch, Git

MAX_ROWS: Final = 100_000  # changed paths of all commits together
LINK, SUBMODULE = 0o120000, 0o160000
_MAX_TARGET: Final = 4_095  # bytes of a link, as of a path (PATH_MAX)
_EMPTY_TREE: Final = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_REPOSITORY_NAMES: Final = ("head", "objects", "refs", "commondir")


@dataclass(frozen=True)
class TreeRow:
    """One path that differs. A mode of 0: it is not there."""

    path: str
    old_mode: int
    new_mode: int
    old_id: str
    new_id: str


def empty_tree(object_format: str) -> str:
    """Its id, which every repository knows."""
    return _EMPTY_TREE[object_format]


def differences(git: Git, pairs: Iterable[tuple[str, str]]) -> list[list[TreeRow]]:
    """The rows of each pair of trees. Raises GitFailed, TooMuch."""
    wanted = list(pairs)
    output = git.run(
        *("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"),
        "--no-ext-diff",
        data="".join(f"{old} {new}\n" for old, new in wanted).encode(),
        max_items=2 * MAX_ROWS,
    )
    results: list[list[TreeRow]] = []
    position = 0
    while position < len(output):
        if output[position : position + 1] != b":":
            position = output.index(b"\n", position) + 1
            results.append([])
            continue
        end = output.index(b"\0", position)
        path_end = output.index(b"\0", end + 1)
        old_mode, new_mode, old_id, new_id, _ = output[position + 1 : end].decode("ascii").split()
        path = output[end + 1 : path_end].decode("utf-8", "surrogateescape")
        results[-1].append(TreeRow(path, int(old_mode, 8), int(new_mode, 8), old_id, new_id))
        position = path_end + 1
    return results


def tree_files(git: Git, tree: str) -> Iterator[tuple[str, int, str]]:
    """Path, mode and id of each file of a tree. Raises GitFailed, TooMuch."""
    output = git.run("ls-tree", "-r", "-z", "--full-tree", tree)
    for line in output.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, object_id = head.decode("ascii").split()
        yield path.decode("utf-8", "surrogateescape"), int(mode, 8), object_id


class TreeLinks:
    """The links of the tree of each commit, made from those of its first parent. Trees without a
    change of links share one mapping."""

    def __init__(self, git: Git, headers: Batch, objects: Batch) -> None:
        self._git, self._headers, self._objects = git, headers, objects
        self._by_commit: dict[str, dict[str, str]] = {}

    def of_tree(self, commit: str, tree: str) -> dict[str, str]:
        """Read the links of a complete tree. Raises GitFailed, TooMuch."""
        if commit not in self._by_commit:
            self._by_commit[commit] = {
                path: self._target(object_id)
                for path, mode, object_id in tree_files(self._git, tree)
                if mode == LINK
            }
        return self._by_commit[commit]

    def apply(self, commit: str, parent: dict[str, str], rows: Iterable[TreeRow]) -> dict[str, str]:
        """The links of a commit that differs in `rows` from one with the links `parent`."""
        changed = [row for row in rows if LINK in (row.old_mode, row.new_mode)]
        links = parent
        if changed:
            gone = {row.path for row in changed if row.new_mode != LINK}
            links = {path: target for path, target in parent.items() if path not in gone}
            links |= {row.path: self._target(row.new_id) for row in changed if row.new_mode == LINK}
        self._by_commit[commit] = links
        return links

    def __contains__(self, commit: str) -> bool:
        return commit in self._by_commit

    def __getitem__(self, commit: str) -> dict[str, str]:
        return self._by_commit[commit]

    def _target(self, object_id: str) -> str:
        if self._headers.header(object_id)[1] > _MAX_TARGET:
            return ""
        return self._objects.content(object_id).decode("utf-8", "surrogateescape")


def bare_repositories(paths: Iterable[str]) -> frozenset[str]:
    """Directories that git takes for a repository, if all of these paths are there together. More
    of them than some commit has are no harm; fewer would be."""
    names: dict[str, set[str]] = {}
    for path in paths:
        folded = path.casefold()
        if any(name in folded for name in _REPOSITORY_NAMES):
            parts = path.split("/")
            for index, name in enumerate(parts):
                names.setdefault("/".join(parts[:index]), set()).add(name)
    return frozenset(path for path, found in names.items() if is_bare_repository(found))

"""The list of commits with their files and differences, as lines of JSON that pages are made of."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentbox.agents.review.autorun import IN_REPOSITORY, autorun_reason
from agentbox.agents.review.autorun_links import mark_autorun
from agentbox.agents.review.change import FileChange, FileState
from agentbox.agents.review.commits.confined import trees
from agentbox.agents.review.commits.confined.commit_object import CommitObject, Person, parse
from agentbox.agents.review.commits.confined.git import Batch, Git, GitFailed
from agentbox.agents.review.commits.confined.trees import LINK, SUBMODULE, TreeLinks, TreeRow
from agentbox.agents.review.escaped_diff import MAX_BYTES, diff
from agentbox.core.visible_text import escape_invisible

MAX_DIFF: Final = 64 << 10  # characters of one file's diff
MAX_TEXT: Final = 64 << 20  # characters of all diffs
DIFF_SECONDS: Final = 30.0  # after them, no more files are compared
PART_FILES: Final = 200
PART_BYTES: Final = 512 << 10  # characters of a line, approximately: one file may exceed it
_FILE_COST: Final = 500  # characters of a file's row beside path and diff


@dataclass
class Listing:
    """What was found on the way. `submodules`: paths of submodule links."""

    parts: int = 0
    runs_by_itself: int = 0
    submodules: list[str] = field(default_factory=list)
    merges: int = 0
    messages: dict[str, str] = field(default_factory=dict)  # by commit


@dataclass
class _Commit:
    commit_id: str
    found: CommitObject
    rows: list[TreeRow]
    changes: list[FileChange] = field(default_factory=list)


def write(git: Git, target: Path, ids: list[str], start: str, object_format: str) -> Listing:
    """Write one line for each commit and each further part of a large one; `ids` are in order,
    parents first. Raises GitFailed, TooMuch, ValueError."""
    with git.batch("--batch-check") as headers, git.batch("--batch") as objects:
        reader = _Reader(git, headers, objects, object_format)
        commits = reader.commits(ids, start)
        listing = Listing(
            runs_by_itself=len({c.path for one in commits for c in one.changes if c.runs}),
            submodules=sorted(
                {row.path for one in commits for row in one.rows if row.new_mode == SUBMODULE}
            ),
            merges=sum(len(one.found.parents) > 1 for one in commits),
            messages={one.commit_id: one.found.message for one in commits},
        )
        with target.open("x", encoding="ascii") as out:
            for index, one in enumerate(commits):
                for part in _parts(index, one, reader):
                    out.write(json.dumps(part, separators=(",", ":")) + "\n")
                    listing.parts += 1
    return listing


class _Reader:
    def __init__(self, git: Git, headers: Batch, objects: Batch, object_format: str) -> None:
        self._git, self._headers, self._objects = git, headers, objects
        self._empty = trees.empty_tree(object_format)
        self._parsed: dict[str, CommitObject] = {}
        self._remaining = MAX_TEXT
        self._deadline = time.monotonic() + DIFF_SECONDS
        self._cached: tuple[str, bytes] = ("", b"")

    def commits(self, ids: list[str], start: str) -> list[_Commit]:
        pairs = [(self._parent_tree(one), self._parse(one).tree) for one in ids]
        rows = trees.differences(self._git, pairs)
        found = [_Commit(one, self._parse(one), each) for one, each in zip(ids, rows, strict=True)]
        self._mark(found, start)
        return found

    def diff(self, row: TreeRow) -> str:
        """Hunks, or a note in brackets."""
        if SUBMODULE in (row.old_mode, row.new_mode):
            return f"[a submodule link to {row.new_id}: its commits are left out]\n"
        if row.old_id == row.new_id:
            return ""
        if self._remaining <= 0:
            return "[not shown: the differences are too large; export the commits]\n"
        if time.monotonic() > self._deadline:
            return "[not compared: it would take too long; export the commits]\n"
        old, new = self._content(row.old_mode, row.old_id), self._content(row.new_mode, row.new_id)
        text = diff(old, new)
        if len(text) > MAX_DIFF:
            text = f"{text[:MAX_DIFF]}\n[truncated]\n"
        self._remaining -= len(text)
        return text

    def _content(self, mode: int, object_id: str) -> bytes:
        """One byte more than is compared stands for a larger file."""
        if not mode:
            return b""
        if object_id == self._cached[0]:
            return self._cached[1]
        if self._headers.header(object_id)[1] > MAX_BYTES:
            return b" " * (MAX_BYTES + 1)
        data = self._objects.content(object_id)
        if mode == LINK:
            return b"link to " + data + b"\n"
        self._cached = (object_id, data)
        return data

    def _parse(self, commit: str) -> CommitObject:
        if commit not in self._parsed:
            kind, _ = self._headers.header(commit)
            if kind != "commit":
                raise GitFailed(f"{commit} is a {kind}")
            self._parsed[commit] = parse(self._objects.content(commit))
        return self._parsed[commit]

    def _parent_tree(self, commit: str) -> str:
        parents = self._parse(commit).parents
        return self._parse(parents[0]).tree if parents else self._empty

    def _mark(self, commits: list[_Commit], start: str) -> None:
        """Marks as in a review, each commit with the links that its own tree has."""
        links = TreeLinks(self._git, self._headers, self._objects)
        groups: dict[int, list[_Commit]] = {}
        by_group: dict[int, Mapping[str, str]] = {}
        for one in commits:
            parent = self._parent_links(one, links)
            mapping = links.apply(one.commit_id, parent, one.rows)
            groups.setdefault(id(mapping), []).append(one)
            by_group[id(mapping)] = mapping
        started = trees.tree_files(self._git, self._parse(start).tree) if start else ()
        repositories = trees.bare_repositories(
            [path for path, _, _ in started]
            + [row.path for one in commits for row in one.rows if row.new_mode]
        )
        reasons: dict[str, str] = {}
        for group, members in groups.items():
            changes = [_change(row, repositories, reasons) for one in members for row in one.rows]
            marked = iter(mark_autorun(changes, by_group[group]))
            for one in members:
                one.changes = [next(marked) for _ in one.rows]

    def _parent_links(self, one: _Commit, links: TreeLinks) -> dict[str, str]:
        if not one.found.parents:
            return {}
        parent = one.found.parents[0]
        return links[parent] if parent in links else links.of_tree(parent, self._parse(parent).tree)


def _change(row: TreeRow, repositories: frozenset[str], reasons: dict[str, str]) -> FileChange:
    if row.path not in reasons:
        parts = row.path.split("/")
        inside = repositories and any(
            "/".join(parts[:index]) in repositories for index in range(len(parts))
        )
        reasons[row.path] = IN_REPOSITORY if inside else autorun_reason(row.path)
    old, new = _state(row.old_mode, row.old_id), _state(row.new_mode, row.new_id)
    runs = "" if LINK in (row.old_mode, row.new_mode) else reasons[row.path]
    return FileChange(
        path=row.path,
        what="added" if old is None else "deleted" if new is None else "modified",
        old=old,
        new=new,
        runs=runs,
    )


def _state(mode: int, object_id: str) -> FileState | None:
    if not mode:
        return None
    return FileState(kind="link" if mode == LINK else "file", mode=mode, size=0, said=object_id)


def _parts(index: int, one: _Commit, reader: _Reader) -> Iterator[dict[str, Any]]:
    pairs = sorted(
        zip(one.rows, one.changes, strict=True), key=lambda pair: (not pair[1].runs, pair[1].path)
    )
    part, files, size = 0, list[dict[str, Any]](), 0
    for row, change in pairs:
        file = _file(row, change, reader.diff(row))
        cost = len(file["diff"]) + len(file["path"]) + _FILE_COST
        if files and (len(files) >= PART_FILES or size + cost > PART_BYTES):
            yield _part(index, part, one, files, more=True)
            part, files, size = part + 1, [], 0
        files.append(file)
        size += cost
    yield _part(index, part, one, files, more=False)


def _part(
    index: int, part: int, one: _Commit, files: list[dict[str, Any]], *, more: bool
) -> dict[str, Any]:
    message = "\n".join(escape_invisible(line, tabs=True) for line in one.found.message.split("\n"))
    if one.found.is_cut:
        message += "\n[truncated]"
    return {
        "index": index,
        "part": part,
        "id": one.commit_id,
        "parents": list(one.found.parents),
        **_person("author", one.found.author),
        **_person("committer", one.found.committer),
        "message": message if part == 0 else "",
        "files": files,
        "more": more,
    }


def _person(role: str, person: Person) -> dict[str, str]:
    return {role: escape_invisible(person.name), f"{role}_date": f"{_time(person)} {person.zone}"}


def _time(person: Person) -> str:
    """As UTC; the number itself if no calendar has it."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(person.time))
    except (OverflowError, ValueError, OSError):
        return str(person.time)


def _file(row: TreeRow, change: FileChange, text: str) -> dict[str, Any]:
    notes = []
    if row.old_mode and row.new_mode and row.old_mode != row.new_mode:
        notes.append(f"mode {row.old_mode:06o} becomes {row.new_mode:06o}")
    elif not row.old_mode and row.new_mode not in (0o100644, LINK):
        notes.append(
            "a submodule link"
            if row.new_mode == SUBMODULE
            else "executable"
            if row.new_mode & 0o111
            else f"mode {row.new_mode:06o}"
        )
    return {
        "path": escape_invisible(change.path),
        "what": change.what,
        "runs": change.runs,
        "notes": notes,
        "diff": text,
    }

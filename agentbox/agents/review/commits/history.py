"""What a sealed branch says of its history, by its files alone: no git runs over them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentbox.agents.review.baseline import GitStart
from agentbox.agents.review.branch_files import open_agent_directory
from agentbox.agents.review.commits.record import CommitsError, CommitsRecord, LeftOut
from agentbox.agents.review.commits.refs import (
    HEADS,
    RefRejected,
    Refs,
    is_safe_name,
    read_bytes,
    read_refs,
)
from agentbox.agents.review.copying import GIT
from agentbox.core.frozen import frozen
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import opened_directory

MAX_LISTED: Final = 100
_MAX_SMALL: Final = 1 << 20  # bytes of a file beside the refs
# Files that make git show another history than the one that is stored: git-replace(1),
# gitrepository-layout(5).
_ALTERING: Final = {
    "shallow": "it cuts the history off; the stored parents are used",
    "info/grafts": "it replaces parents of commits; the stored parents are used",
}
_OBJECT_DIRECTORIES: Final = ("objects", "objects/info", "objects/pack")


@frozen
class SealedHistory:
    """`record` has an error if there is nothing to take; then the rest does not matter."""

    record: CommitsRecord
    object_format: str = "sha1"


def inspect(
    sealed: Path, workspace: Path, start: GitStart | None, objects: tuple[str, ...]
) -> SealedHistory:
    """The history of the branch in `sealed`, a copy of `workspace`, whose processes have ended.
    `objects`: the directories that it borrows from. Raises OSError."""
    if start is None:
        return _failed(
            "no-repository", "the workspace had no git repository when the agent started"
        )
    if start.problem:
        return _failed("history-left-out", f"the repository of the workspace: {start.problem}")
    with opened_directory(str(workspace)) as root:
        shallow = read_bytes(root, f"{GIT}/shallow", _MAX_SMALL)
    with open_agent_directory(str(sealed), None) as root:
        try:
            git_dir = open_beneath(root, GIT, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            return _failed("history-left-out", f".git is not a directory: {error.strerror}")
        try:
            return _inspect_repository(git_dir, start, objects, shallow)
        finally:
            os.close(git_dir)


def _inspect_repository(
    git_dir: int, start: GitStart, objects: tuple[str, ...], shallow: bytes | None
) -> SealedHistory:
    try:
        refs = read_refs(git_dir)
    except RefRejected as error:
        return _failed("ref-refused", str(error))
    left_out = tuple(_left_out(git_dir, refs, start, shallow))
    record = CommitsRecord(ref=refs.head, start=start.head, tip=refs.tip, left_out=left_out)
    if refs.tip != start.head and (problem := _object_problem(git_dir, objects)):
        record = replace(record, error="history-left-out", detail=problem)
    return SealedHistory(record=record, object_format=start.object_format)


def _left_out(
    git_dir: int, refs: Refs, start: GitStart, shallow: bytes | None
) -> Iterator[LeftOut]:
    for path, reason in _ALTERING.items():
        content = read_bytes(git_dir, path, _MAX_SMALL)
        if content and not (path == "shallow" and content == shallow):
            yield LeftOut(what=path, why=reason)
    changed = [
        (name, _reason(name))
        for name, content in sorted(refs.ids.items())
        if name != refs.head and start.refs.get(name) != content
    ]
    for name, why in changed[:MAX_LISTED]:
        yield LeftOut(what=name, why=why)
    if (more := len(changed) - MAX_LISTED) > 0:
        yield LeftOut(what=f"{more} more refs", why="only the branch of HEAD is taken")


def _reason(name: str) -> str:
    if not is_safe_name(name):
        return "git refuses this name of a ref"
    if name.startswith("refs/replace/"):
        return "it replaces an object; the stored objects are used"
    if name.startswith(HEADS):
        return "another branch than that of HEAD"
    return "outside of refs/heads"


def _object_problem(git_dir: int, objects: Iterable[str]) -> str:
    """Why its objects cannot be read; "" if they can."""
    for path in _OBJECT_DIRECTORIES:
        try:
            os.close(open_beneath(git_dir, path, os.O_RDONLY | os.O_DIRECTORY))
        except FileNotFoundError:
            continue
        except OSError as error:
            return f".git/{path} is not a directory: {error.strerror}"
    alternates = read_bytes(git_dir, "objects/info/alternates", _MAX_SMALL)
    if alternates is None:
        return "" if _is_absent(git_dir) else "objects/info/alternates is not a file"
    other = set(os.fsdecode(alternates).split("\n")) - {"", *objects}
    if other:
        return f"objects/info/alternates names other objects: {min(other)[:200]}"
    return ""


def _is_absent(git_dir: int) -> bool:
    try:
        os.close(open_beneath(git_dir, "objects/info/alternates", os.O_PATH))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _failed(error: CommitsError, detail: str) -> SealedHistory:
    return SealedHistory(record=CommitsRecord(error=error, detail=detail))

"""A review as callers see it: plain data in pages, with all untrusted text escaped."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agentbox.agents.review.apply import file_state
from agentbox.agents.review.branch_files import open_entry
from agentbox.agents.review.change import FileChange, FileState, Review
from agentbox.agents.review.escaped_diff import MAX_BYTES, diff
from agentbox.agents.review.journal import DIRECTORY_FLAGS, open_parent
from agentbox.core import clock
from agentbox.core.linux.path_opener import open_directory
from agentbox.core.records.wire import to_json
from agentbox.core.visible_text import escape_invisible

MAX_PAGE: Final = 1_000
MAX_CHANGES_BYTES: Final = 4 << 20  # as JSON; the message that carries a page is limited
MAX_SKIPPED_BYTES: Final = 1 << 20
MAX_DIFF: Final = 64 << 10  # characters of one file's diff
MAX_TEXT: Final = 1 << 20  # characters of diff on a page
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def summary(review: Review) -> dict[str, Any]:
    """One line of the list of reviews."""
    counts = {
        kind: sum(change.what == kind for change in review.changes)
        for kind in ("added", "modified", "deleted")
    }
    return {
        "agent_id": review.agent_id,
        "name": escape_invisible(review.name),
        "digest": review.digest,
        **counts,
        "sealed_at": clock.to_wire(clock.from_unix(review.sealed_at)),
        "runs_by_itself": sum(bool(change.runs) for change in review.changes),
        "left_out": len(review.left_out),
        "commits": 0 if review.commits is None else review.commits.count,
    }


def page(review: Review, sealed: Path, start: int, limit: int) -> dict[str, Any]:
    """Changes from `start` on with their diffs against the current workspace; `next` is the first
    of the next page. At least one change, fewer than `limit` if they are large. The first page has
    the skipped paths, as far as they fit."""
    with _ReviewRoots(sealed, Path(review.workspace)) as roots:
        changes = list(
            _within_bytes(
                MAX_CHANGES_BYTES, _rows(review.changes[start : start + limit], start, roots)
            )
        )
    next_index = start + len(changes)
    skipped = (
        ({"path": escape_invisible(item.path), "why": item.why} for item in review.left_out)
        if start == 0
        else ()
    )
    return {
        "summary": summary(review),
        "changes": changes,
        "next": next_index if next_index < len(review.changes) else None,
        "left_out": list(_within_bytes(MAX_SKIPPED_BYTES, skipped)),
    }


def _rows(
    changes: Sequence[FileChange], start: int, roots: "_ReviewRoots"
) -> Iterator[dict[str, Any]]:
    remaining = MAX_TEXT
    for index, change in enumerate(changes, start):
        row = _row(index, change, roots, max(0, min(remaining, MAX_DIFF)))
        remaining -= len(row["diff"])
        yield row


def _within_bytes(max_bytes: int, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first row, and those after it that fit into `max_bytes` of JSON."""
    remaining = max_bytes
    for index, row in enumerate(rows):
        remaining -= len(to_json(row, ensure_ascii=True))
        if index and remaining < 0:
            return
        yield row


class _ReviewRoots:
    """Descriptors of the sealed copy and the workspace."""

    def __init__(self, sealed: Path, workspace: Path) -> None:
        self._paths = (sealed, workspace)

    def __enter__(self) -> "_ReviewRoots":
        self.sealed = os.open(self._paths[0], DIRECTORY_FLAGS)
        self.workspace = open_directory(str(self._paths[1]))
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.sealed)
        os.close(self.workspace)


def _row(index: int, change: FileChange, roots: _ReviewRoots, max_diff: int) -> dict[str, Any]:
    notes = [escape_invisible(note) for note in change.notes]
    if not _is_unchanged(change, roots.workspace):
        notes.append("conflict: the workspace has changed here since the agent started")
    text = _diff(change, roots)
    if len(text) > max_diff:
        text = f"{text[:max_diff]}\n[truncated]\n"
    return {
        "index": index,
        "path": escape_invisible(change.path),
        "what": change.what,
        "old": _describe_state(change.old),
        "new": _describe_state(change.new),
        "runs": change.runs,
        "notes": notes,
        "diff": text,
    }


def _describe_state(state: FileState | None) -> Mapping[str, Any] | None:
    if state is None:
        return None
    content = (
        {"sha256": state.said}
        if state.kind == "file"
        else {"leads_to": escape_invisible(state.said)}
    )
    return {"kind": state.kind, "mode": f"{state.mode:04o}", "size": state.size, **content}


def _is_unchanged(change: FileChange, workspace: int) -> bool:
    try:
        with open_parent(workspace, change.path) as (parent_fd, name):
            return file_state(parent_fd, name) in (change.old, change.new)
    except FileNotFoundError:
        return change.old is None or change.new is None
    except OSError:
        return change.new is None


def _diff(change: FileChange, roots: _ReviewRoots) -> str:
    old = _read_content(roots.workspace, change.path, change.old)
    new = _read_content(roots.sealed, change.path, change.new)
    return diff(old, new) if old != new else ""


def _read_content(root: int, path: str, state: FileState | None) -> bytes:
    """Current content, one byte more than the maximum that is compared; the target of a link as a
    line."""
    if state is None:
        return b""
    with suppress(OSError), open_parent(root, path) as (parent_fd, name):
        if stat.S_ISLNK(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
            return b"link to " + os.fsencode(os.readlink(name, dir_fd=parent_fd)) + b"\n"
        with open_entry(name, parent_fd, _FILE_FLAGS) as descriptor:
            buffer = bytearray()
            while len(buffer) <= MAX_BYTES and (
                data := os.read(descriptor, MAX_BYTES + 1 - len(buffer))
            ):
                buffer += data
            return bytes(buffer)
    return b""

"""A review as callers see it: plain data, a page at a time, everything of the agent's visible and nothing obeyed."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agentbox.agents.review.apply import side
from agentbox.agents.review.change import Change, Review, Side
from agentbox.agents.review.compare import opened
from agentbox.agents.review.escaping import MOST_BYTES, diff
from agentbox.agents.review.journal import FOLDER, parent
from agentbox.core import clock
from agentbox.core.linux.opening import open_folder
from agentbox.core.records.wire import to_json
from agentbox.core.visible import visible

MOST_ON_A_PAGE: Final = 1_000
MOST_BYTES_OF_CHANGES: Final = 4 << 20  # as JSON; the message that carries a page has a bound
MOST_BYTES_LEFT_OUT: Final = 1 << 20
MOST_DIFF: Final = 64 << 10  # characters of one file's diff
MOST_TEXT: Final = 1 << 20  # characters of diff on a page
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def summary(review: Review) -> dict[str, Any]:
    """One line of the list of reviews."""
    counts = {what: sum(one.what == what for one in review.changes) for what in ("added", "modified", "deleted")}
    return {
        "agent_id": review.agent_id, "name": visible(review.name), "digest": review.digest, **counts,
        "sealed_at": clock.to_wire(clock.at(review.sealed_at)),
        "runs_by_itself": sum(bool(one.runs) for one in review.changes), "left_out": len(review.left_out),
    }  # fmt: skip


def page(review: Review, sealed: Path, at: int, limit: int) -> dict[str, Any]:
    """Changes from `at` on with their diffs against the workspace as it is now, `next` the first of the next page: one
    change at least, fewer than `limit` where they are large. The first page has what is left out, as far as fits."""
    with _Places(sealed, Path(review.workspace)) as places:
        changes = list(_within(MOST_BYTES_OF_CHANGES, _rows(review.changes[at : at + limit], at, places)))
    after = at + len(changes)
    left_out = ({"path": visible(one.path), "why": one.why} for one in review.left_out) if at == 0 else ()
    return {
        "summary": summary(review),
        "changes": changes,
        "next": after if after < len(review.changes) else None,
        "left_out": list(_within(MOST_BYTES_LEFT_OUT, left_out)),
    }


def _rows(changes: Sequence[Change], at: int, places: "_Places") -> Iterator[dict[str, Any]]:
    room = MOST_TEXT
    for index, change in enumerate(changes, at):
        row = _row(index, change, places, max(0, min(room, MOST_DIFF)))
        room -= len(row["diff"])
        yield row


def _within(most: int, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first row, and those after it that fit into as many bytes of JSON."""
    room = most
    for index, row in enumerate(rows):
        room -= len(to_json(row, ensure_ascii=True))
        if index and room < 0:
            return
        yield row


class _Places:
    """Descriptors of the sealed copy and the workspace."""

    def __init__(self, sealed: Path, workspace: Path) -> None:
        self._paths = (sealed, workspace)

    def __enter__(self) -> "_Places":
        self.sealed = os.open(self._paths[0], FOLDER)
        self.workspace = open_folder(str(self._paths[1]))
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.sealed)
        os.close(self.workspace)


def _row(index: int, change: Change, places: _Places, room: int) -> dict[str, Any]:
    notes = [visible(note) for note in change.notes]
    if not _as_it_was(change, places.workspace):
        notes.append("the workspace has changed here since the agent began: a conflict")
    text = _diff(change, places)
    if len(text) > room:
        text = f"{text[:room]}\n[cut here]\n"
    return {
        "index": index, "path": visible(change.path), "what": change.what, "old": _side(change.old),
        "new": _side(change.new), "runs": change.runs, "notes": notes, "diff": text,
    }  # fmt: skip


def _side(one: Side | None) -> Mapping[str, Any] | None:
    if one is None:
        return None
    said = {"sha256": one.said} if one.kind == "file" else {"leads_to": visible(one.said)}
    return {"kind": one.kind, "mode": f"{one.mode:04o}", "size": one.size, **said}


def _as_it_was(change: Change, workspace: int) -> bool:
    try:
        with parent(workspace, change.path) as (above, name):
            return side(above, name) in (change.old, change.new)
    except FileNotFoundError:
        return change.old is None or change.new is None
    except OSError:
        return change.new is None


def _diff(change: Change, places: _Places) -> str:
    old = _bytes(places.workspace, change.path, change.old)
    new = _bytes(places.sealed, change.path, change.new)
    return diff(old, new) if old != new else ""


def _bytes(root: int, path: str, one: Side | None) -> bytes:
    """What lies there now, one byte more than what is compared at the most; where a link leads, as a line."""
    if one is None:
        return b""
    with suppress(OSError), parent(root, path) as (above, name):
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return b"link to " + os.fsencode(os.readlink(name, dir_fd=above)) + b"\n"
        with opened(name, above, _FILE) as descriptor:
            found = bytearray()
            while len(found) <= MOST_BYTES and (data := os.read(descriptor, MOST_BYTES + 1 - len(found))):
                found += data
            return bytes(found)
    return b""

"""The stored commits of a review as callers see them: pages, files, and why there are none."""

import asyncio
import base64
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbox.agents.review.change import Review
from agentbox.agents.review.commits.record import CommitsRecord, FileName, LeftOut
from agentbox.agents.review.commits.refs import HEADS, is_id
from agentbox.agents.runs.confinement import resolve_in_box
from agentbox.core.frozen import frozen
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    HistoryLeftOut,
    NoRepository,
    ObjectsBad,
    RefRefused,
    TipDiffers,
    ValidationError,
)
from agentbox.core.visible_text import escape_invisible

if TYPE_CHECKING:
    from agentbox.agents.review.review_files import ReviewFiles

MAX_PAGE: Final = 1_000
MAX_PAGE_BYTES: Final = 4 << 20  # of lines; the message that carries a page is limited
MAX_CHUNK: Final = 2 << 20  # bytes of a file in one message
_MAX_REF: Final = 1_000  # characters
_MAX_LISTED: Final = 100  # paths in an error
_ERRORS: Final[Mapping[str, type[AdapterError]]] = {
    kind.code: kind for kind in (NoRepository, HistoryLeftOut, ObjectsBad, RefRefused)
}


@frozen
class TakenCommits:
    """What the caller has made of the commits: the commit that is the tip of `ref`, with the
    changes that have no commit or without."""

    tip: str
    ref: str
    with_rest: bool

    def check(self) -> None:
        """Raises ValidationError."""
        is_branch = self.ref.startswith(HEADS) and self.ref != HEADS and len(self.ref) <= _MAX_REF
        valid = {"/tip": is_id(self.tip), "/ref": is_branch}
        errors = [
            {"pointer": pointer, "detail": "is not valid"}
            for pointer, ok in valid.items()
            if not ok
        ]
        if errors:
            raise ValidationError(f"invalid {errors[0]['pointer']}: is not valid", errors=errors)


class CommitReader:
    """Reads what was stored with the reviews."""

    def __init__(self, paths: Paths, files: "ReviewFiles") -> None:
        self._paths, self._files = paths, files

    async def show(self, agent_id: str, start: int, limit: int) -> dict[str, Any]:
        """Parts of commits from `start` on; `next` is the first of the next page. Raises NotFound,
        ValidationError and what `record_of` raises."""
        if start < 0 or not 1 <= limit <= MAX_PAGE:
            detail = f"must be from 1 to {MAX_PAGE}, with a start of at least 0"
            errors = [{"pointer": "?limit", "detail": detail}]
            raise ValidationError(f"invalid limit: {detail}", errors=errors)
        review = await asyncio.to_thread(self._files.read, agent_id)
        record = record_of(review)
        parts = await asyncio.to_thread(self._parts, agent_id, start, limit) if record.count else []
        following = start + len(parts)
        return {
            "summary": self._summary(review, record),
            "commits": parts,
            "next": following if following < record.parts else None,
        }

    async def read(self, agent_id: str, name: FileName, start: int, limit: int) -> dict[str, Any]:
        """Bytes of a file from `start` on, base64, with its SHA-256 and size. Raises NotFound,
        HistoryLeftOut for a file that there is not, and what `record_of` raises."""
        review = await asyncio.to_thread(self._files.read, agent_id)
        record = record_of(review)
        stored = record.files.get(name)
        if stored is None:
            raise HistoryLeftOut(
                f"cannot export the commits of {agent_id}: {_why_absent(record, name)}", id=agent_id
            )
        path = self._files.commits_path(agent_id)
        try:
            data = await asyncio.to_thread(_read_at, path, name, start, min(limit, MAX_CHUNK))
        except OSError as error:
            raise _unreadable(agent_id, error) from error
        encoded = base64.b64encode(data).decode("ascii")
        return {"data": encoded, "sha256": stored.sha256, "size": stored.size}

    def _parts(self, agent_id: str, start: int, limit: int) -> list[dict[str, Any]]:
        try:
            return list(_lines(self._files.commits_path(agent_id), start, limit))
        except (OSError, ValueError) as error:
            raise _unreadable(agent_id, error) from error

    def _summary(self, review: Review, record: CommitsRecord) -> dict[str, Any]:
        box_workspace = resolve_in_box(self._paths, self._paths.workspace)
        directory = os.path.relpath(review.workspace, box_workspace)
        return {
            "agent_id": review.agent_id,
            "name": escape_invisible(review.name),
            "digest": review.digest,
            "directory": "" if directory == "." else directory,
            "ref": escape_invisible(record.ref),
            "start": record.start,
            "tip": record.tip,
            "count": record.count,
            "runs_by_itself": record.runs_by_itself,
            "left_out": _rows(record.left_out),
            "files": {name: vars_of(record, name) for name in record.files if name != "listing"},
            "patches_why": escape_invisible(record.patches_why),
            "rest": _rows(record.rest),
            "rest_count": record.rest_count,
            "rest_tip": record.rest_tip,
            "rest_why": escape_invisible(record.rest_why),
            "ignored": record.ignored,
        }


def vars_of(record: CommitsRecord, name: str) -> dict[str, Any]:
    """SHA-256 and size of a file."""
    stored = record.files[name]
    return {"sha256": stored.sha256, "size": stored.size}


def record_of(review: Review) -> CommitsRecord:
    """The commits that can be taken. Raises NoRepository, HistoryLeftOut, ObjectsBad,
    RefRefused."""
    record = review.commits
    error, detail = ("no-repository", _NO_REPOSITORY) if record is None else _failure(record)
    if error:
        raise _ERRORS[error](
            f"cannot show the commits of {review.agent_id}: {escape_invisible(detail)}",
            hint="its files can still be reviewed and taken without commits",
            id=review.agent_id,
        )
    assert record is not None
    return record


_NO_REPOSITORY: Final = "the workspace had no git repository at its root when the agent started"


def _failure(record: CommitsRecord) -> tuple[str, str]:
    left_out = "; ".join(f"{item.what}: {item.why}" for item in record.left_out[:3])
    return record.error, f"{record.detail} (left out: {left_out})" if left_out else record.detail


def check_rest(agent_id: str, record: CommitsRecord, *, with_rest: bool) -> None:
    """Raises TipDiffers if the changes that have no commit would be lost."""
    if record.rest_count and not with_rest:
        raise TipDiffers(
            f"cannot take the commits of {agent_id}: {record.rest_count} paths differ from the "
            "last commit",
            hint="take them with a commit of these changes, or take the files without commits",
            id=agent_id,
            paths={escape_invisible(item.what): item.why for item in record.rest[:_MAX_LISTED]},
        )


def _rows(items: tuple[LeftOut, ...]) -> list[dict[str, str]]:
    return [
        {"path": escape_invisible(item.what), "why": escape_invisible(item.why)} for item in items
    ]


def _why_absent(record: CommitsRecord, name: FileName) -> str:
    if not record.count:
        return "there are none"
    if name.startswith("rest") and not record.rest_tip:
        return escape_invisible(record.rest_why) or "the last commit has all changes"
    return escape_invisible(record.patches_why) or "the file is missing"


def _lines(directory: Path, start: int, limit: int) -> Iterator[dict[str, Any]]:
    """At least one line, and those after it that fit."""
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = open_beneath(root, "out/listing", os.O_RDONLY)
    finally:
        os.close(root)
    with os.fdopen(descriptor, encoding="ascii") as lines:
        size = 0
        for line in itertools.islice(lines, start, start + limit):
            size += len(line)
            if size > MAX_PAGE_BYTES and size != len(line):
                return
            yield json.loads(line)


def _read_at(directory: Path, name: str, start: int, limit: int) -> bytes:
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = open_beneath(root, f"out/{name}", os.O_RDONLY)
    finally:
        os.close(root)
    try:
        return os.pread(descriptor, limit, start)
    finally:
        os.close(descriptor)


def _unreadable(agent_id: str, error: Exception) -> BackendError:
    return BackendError(
        f"cannot read the commits of {agent_id}: {error}", slot="orchestrator", impl="local-process"
    )

"""Branches of this host's agents, from their making to the operator's decision. Files are the truth: what is in memory is
only which reviews there are."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import structlog

from agentbox.agents.admission.confinement import protected_dirs, resolve_in_box
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.store import LifecycleEvent
from agentbox.agents.review import baseline, branch, journal, pages
from agentbox.agents.review.apply import Conflicts, ReviewApplier
from agentbox.agents.review.branch import WORK, Branch, ReportProgress
from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import compare
from agentbox.agents.runs import home
from agentbox.core.files.atomic import read_json, replace
from agentbox.core.linux.path_opener import Boundary
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import (
    BackendError,
    NotFound,
    PreconditionFailed,
    ReviewConflict,
    SpawnError,
    ValidationError,
)
from agentbox.core.visible import escape_invisible
from agentbox.policy.profiles import UNRESTRICTED

log = structlog.get_logger()
SEALED: Final = "sealed"
_BASELINE_FILE, _REVIEW_FILE, _COMMIT_FILE = "start.jsonl", "review.json", "commit.json"
_MAX_LISTED: Final = 100  # conflicts that an answer names

EmitEvent = Callable[[LifecycleEvent], Awaitable[None]]


def uses_branch(entry: AgentRecord) -> bool:
    """Whoever may write the workspace, unless the spec says that it writes the workspace itself."""
    return (
        entry.holding.workspace == "branch"
        and entry.holding.root != UNRESTRICTED
        and any(
            right.scope == "fs"
            and right.mode == "allow"
            and "write" in right.operations
            and any(pattern.startswith("$WORKSPACE") for pattern in right.patterns)
            for right in (grant.right for grant in entry.holding.grants)
        )
    )


class ReviewManager:
    """`folder`: where lists, reviews and journals are kept, one folder an agent. `tell` is given each event, in order."""

    def __init__(self, paths: Paths, directory: Path, emit_event: EmitEvent) -> None:
        self._paths, self._directory, self._emit_event = paths, directory, emit_event
        self._summaries: dict[str, dict[str, Any]] = {}  # summaries, by agent
        self._unreadable: set[str] = set()  # agents whose branch could not be looked at
        self._lock = asyncio.Lock()

    async def load(self, running: frozenset[str]) -> None:
        """What an earlier process of this host left: a commit that was cut off is finished or undone, and a branch of an
        agent that lives no more is sealed."""
        for agent_id in await asyncio.to_thread(
            lambda: sorted(path.name for path in _subdirectories(self._directory))
        ):
            try:
                recovered = await asyncio.to_thread(
                    journal.recover, self._file_path(agent_id, _COMMIT_FILE)
                )
                if recovered is not None:
                    data = {
                        "phase": recovered.phase,
                        "kept": {
                            escape_invisible(path): old for path, old in recovered.preserved.items()
                        },
                    }
                    log.warning("a commit was cut off", agent_id=agent_id, **data)
                    await self._emit_event(LifecycleEvent("review.recovered", agent_id, data))
                if agent_id not in running:
                    await self._seal(agent_id, "")
                    await self.clean_up(agent_id)
            except (OSError, ValueError) as error:
                self._unreadable.add(agent_id)
                log.error("a branch is kept as it is", agent_id=agent_id, reason=str(error))

    async def open_branch(
        self, entry: AgentRecord, workspace: Path, report_progress: ReportProgress
    ) -> Branch | None:
        """Where that agent works: a copy of `folder`, made at its first start; no link is followed that agents may have
        put there. None for one that works in the workspace itself, or not at all.

        Raises SpawnError (stage branch).
        """
        if not uses_branch(entry):
            return None
        directory = resolve_in_box(self._paths, home.agent_dir(self._paths, entry.agent_id))
        baseline_path, boundary = (
            self._file_path(entry.agent_id, _BASELINE_FILE),
            Boundary(protected=protected_dirs(self._paths)),
        )
        committer = (entry.spec.name, f"{entry.agent_id}@agentbox.invalid")

        def create() -> Branch:
            self._unseal(entry.agent_id, directory)
            return branch.create(
                workspace, directory, baseline_path, committer, report_progress, boundary
            )

        try:
            return await asyncio.to_thread(create)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SpawnError(
                f"cannot copy the workspace for {entry.spec.name}: {reason}", stage="branch"
            ) from error

    async def seal(self, entry: AgentRecord) -> dict[str, Any] | None:
        """After the last life: what changed, or None. A branch that cannot be read is kept, and looked at again at the
        next start of this host."""
        try:
            return await self._seal(entry.agent_id, entry.spec.name)
        except (OSError, ValueError) as error:
            self._unreadable.add(entry.agent_id)
            log.error("a branch is kept as it is", agent_id=entry.agent_id, reason=str(error))
            return None

    async def clean_up(self, agent_id: str) -> None:
        """Of an agent that is over: removes a branch that nobody needs to see, once no commit or discard removes it. Raises OSError."""
        async with self._lock:
            if agent_id not in self._summaries and agent_id not in self._unreadable:
                await asyncio.to_thread(self._remove, agent_id)

    def drop(self, agent_id: str) -> None:
        """Of an agent that never ran. Raises OSError."""
        home.remove(self._directory / agent_id)

    def page(self) -> list[dict[str, Any]]:
        """All reviews that wait, oldest first."""
        return sorted(self._summaries.values(), key=lambda one: (one["sealed_at"], one["agent_id"]))

    async def show(self, agent_id: str, start: int, limit: int) -> dict[str, Any]:
        """Raises NotFound or ValidationError."""
        if start < 0 or not 1 <= limit <= pages.MAX_PAGE:
            detail = f"must be from 1 to {pages.MAX_PAGE}, from a place that is not below 0"
            raise ValidationError(
                f"cannot take limit: it {detail}", errors=[{"pointer": "?limit", "detail": detail}]
            )
        review = await asyncio.to_thread(self._read_review, agent_id)
        return await asyncio.to_thread(
            pages.page, review, self._sealed_path(agent_id), start, limit
        )

    async def commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        """Takes what was shown. Raises NotFound, PreconditionFailed (another digest), ReviewConflict or BackendError; the
        workspace is then as it was. Goes on when the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._commit(agent_id, digest, by)))

    async def discard(self, agent_id: str, by: str) -> dict[str, Any]:
        """Removes branch and review, also of a branch that could not be looked at. Raises NotFound. Goes on when the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._discard(agent_id, by)))

    async def _commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        async with self._lock:
            review = await asyncio.to_thread(self._read_review, agent_id)
            if digest != review.digest:
                raise PreconditionFailed(
                    f"cannot commit {agent_id}: its digest is {review.digest}", etag=review.digest
                )
            try:
                changed = await asyncio.to_thread(self._apply, review)
            except Conflicts as error:
                conflicts = {
                    escape_invisible(path): reason
                    for path, reason in sorted(error.reasons.items())[:_MAX_LISTED]
                }
                data = {
                    "by": by,
                    "digest": digest,
                    "conflicts": len(error.reasons),
                    "paths": list(conflicts),
                }
                await self._emit_event(LifecycleEvent("review.conflicted", agent_id, data))
                raise ReviewConflict(
                    f"cannot commit {agent_id}: {len(error.reasons)} paths changed in the workspace; {_outcome(error)}",
                    hint="take them back there, or discard the review",
                    id=agent_id,
                    conflicts=conflicts,
                ) from error
            except OSError as error:
                raise BackendError(
                    f"cannot commit {agent_id}: {error.strerror}; the workspace is as it was",
                    slot="orchestrator",
                    impl="local-process",
                ) from error
            data = {"by": by, "digest": digest, "paths": len(review.changes), "changed": changed}
            await self._close_review(agent_id, LifecycleEvent("review.committed", agent_id, data))
            return {"agent_id": agent_id, "digest": digest, "changed": changed}

    async def _discard(self, agent_id: str, by: str) -> dict[str, Any]:
        async with self._lock:
            summary = self._summaries.get(agent_id)
            if summary is None and agent_id not in self._unreadable:
                raise _not_found(agent_id)
            digest = (
                "" if summary is None else summary["digest"]
            )  # of a branch that could not be looked at there is none
            data = {"by": by, "digest": digest}
            await self._close_review(agent_id, LifecycleEvent("review.discarded", agent_id, data))
            return {"agent_id": agent_id, "digest": digest}

    async def _close_review(self, agent_id: str, event: LifecycleEvent) -> None:
        await self._emit_event(event)
        self._summaries.pop(agent_id, None)
        self._unreadable.discard(agent_id)
        await asyncio.to_thread(self._remove, agent_id)

    async def _seal(self, agent_id: str, name: str) -> dict[str, Any] | None:
        is_new = not self._file_path(agent_id, _REVIEW_FILE).exists()
        review = await asyncio.to_thread(self._load_or_seal, agent_id, name)
        if review is None:
            return None
        summary = self._summaries[agent_id] = pages.summary(review)
        if is_new:
            data = {
                name: summary[name]
                for name in ("digest", "added", "modified", "deleted", "runs_by_itself", "left_out")
            }
            await self._emit_event(
                LifecycleEvent("review.sealed", agent_id, {"name": summary["name"], **data})
            )
        return summary

    def _load_or_seal(self, agent_id: str, name: str) -> Review | None:
        """Moved out of every grant first: the branch's folders are named by none, and its processes are gone."""
        if self._file_path(agent_id, _REVIEW_FILE).exists():
            return self._read_review(agent_id)
        work, sealed = home.agent_dir(self._paths, agent_id) / WORK, self._sealed_path(agent_id)
        if work.is_dir() and not sealed.exists():
            work.rename(sealed)
        if not sealed.is_dir():
            return None
        recorded = baseline.read(self._file_path(agent_id, _BASELINE_FILE))
        workspace = (
            resolve_in_box(self._paths, self._paths.workspace)
            if recorded is None
            else Path(recorded.workspace)
        )
        comparison = compare(sealed, workspace, {} if recorded is None else recorded.rows)
        if not comparison.changes:
            return None
        review = Review(
            agent_id=agent_id,
            name=name,
            workspace=str(workspace),
            sealed_at=time.time(),
            changes=tuple(comparison.changes),
            left_out=tuple(comparison.skipped),
            emptied=tuple(comparison.emptied),
        )
        replace(
            self._file_path(agent_id, _REVIEW_FILE),
            json.dumps(review.to_json()).encode("ascii"),
            mode=0o600,
        )
        return review

    def _unseal(self, agent_id: str, directory: Path) -> None:
        """For an agent that starts again although its end was being written down."""
        if (directory / SEALED).is_dir() and not (directory / WORK).exists():
            self._file_path(agent_id, _REVIEW_FILE).unlink(missing_ok=True)
            (directory / SEALED).rename(directory / WORK)
            self._summaries.pop(agent_id, None)

    def _apply(self, review: Review) -> int:
        applier = ReviewApplier(
            Path(review.workspace),
            self._sealed_path(review.agent_id),
            self._file_path(review.agent_id, _COMMIT_FILE),
            review,
        )
        with contextlib.closing(applier):
            return applier.apply()

    def _read_review(self, agent_id: str) -> Review:
        try:
            data = (
                read_json(self._file_path(agent_id, _REVIEW_FILE))
                if _is_safe_name(agent_id)
                else None
            )
            if data is None:
                raise _not_found(agent_id)
            return Review.from_json(data)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BackendError(
                f"cannot read the review of {agent_id}: {error}",
                slot="orchestrator",
                impl="local-process",
            ) from error

    def _remove(self, agent_id: str) -> None:
        """The list goes last: with it the branch is known again after a crash."""
        directory = home.agent_dir(self._paths, agent_id)
        for name in (WORK, SEALED):
            home.remove(directory / name)
        home.remove(self._directory / agent_id)
        with contextlib.suppress(OSError):  # home and tmp may still be there
            directory.rmdir()

    def _sealed_path(self, agent_id: str) -> Path:
        return home.agent_dir(self._paths, agent_id) / SEALED

    def _file_path(self, agent_id: str, name: str) -> Path:
        return self._directory / agent_id / name


def _outcome(conflicts: Conflicts) -> str:
    if not conflicts.preserved:
        return "nothing was taken"
    preserved = [
        f"{escape_invisible(path)} (the file before it: {old})" if old else escape_invisible(path)
        for path, old in conflicts.preserved.items()
    ]
    return f"what was written there meanwhile is kept: {', '.join(preserved[:_MAX_LISTED])}; nothing else was taken"


def _subdirectories(directory: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from directory.iterdir()


def _is_safe_name(agent_id: str) -> bool:
    return (
        "/" not in agent_id
        and "\0" not in agent_id
        and not agent_id.startswith(".")
        and bool(agent_id)
    )


def _not_found(agent_id: str) -> NotFound:
    return NotFound(
        f"cannot find a review of agent {escape_invisible(agent_id)}",
        resource="review",
        id=agent_id,
    )

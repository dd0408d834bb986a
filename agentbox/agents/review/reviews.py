"""Branches of this host's agents, from creation to the operator's decision. Files are
authoritative; memory has only the list of reviews."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import structlog

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.event_record import LifecycleEvent
from agentbox.agents.review import baseline, branch, journal, pages
from agentbox.agents.review.apply import Conflicts, ReviewApplier
from agentbox.agents.review.branch import WORK, Branch, ReportProgress
from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import compare
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import protected_dirs, resolve_in_box
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
_MAX_LISTED: Final = 100  # conflicts in a response

EmitEvent = Callable[[LifecycleEvent], Awaitable[None]]


def uses_branch(entry: AgentRecord) -> bool:
    """True for an agent that may write the workspace, unless its spec asks to write it directly."""
    return (
        entry.grant_set.workspace == "branch"
        and entry.grant_set.root != UNRESTRICTED
        and any(
            right.scope == "fs"
            and right.mode == "allow"
            and "write" in right.operations
            and any(pattern.startswith("$WORKSPACE") for pattern in right.patterns)
            for right in (grant.right for grant in entry.grant_set.grants)
        )
    )


class ReviewManager:
    """`directory`: baselines, reviews and journals, one directory per agent. `emit_event` receives
    each event, in order."""

    def __init__(self, paths: Paths, directory: Path, emit_event: EmitEvent) -> None:
        self._paths, self._directory, self._emit_event = paths, directory, emit_event
        self._summaries: dict[str, dict[str, Any]] = {}  # by agent id
        self._unreadable: set[str] = set()  # ids of agents whose branch could not be read
        self._lock = asyncio.Lock()

    async def load(self, running: frozenset[str]) -> None:
        """Recover what an earlier process left: interrupted commits are completed or rolled back,
        and branches of agents that no longer run are sealed."""
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
                            escape_invisible(path): previous
                            for path, previous in recovered.preserved.items()
                        },
                    }
                    log.warning("recovered an interrupted commit", agent_id=agent_id, **data)
                    await self._emit_event(LifecycleEvent("review.recovered", agent_id, data))
                if agent_id not in running:
                    await self._seal(agent_id, "")
                    await self.clean_up(agent_id)
            except (OSError, ValueError) as error:
                self._unreadable.add(agent_id)
                log.error(
                    "cannot process a branch; it is kept", agent_id=agent_id, reason=str(error)
                )

    async def open_branch(
        self, entry: AgentRecord, workspace: Path, report_progress: ReportProgress
    ) -> Branch | None:
        """The branch of that agent: a copy of `workspace`, created at its first start without
        following links made by agents. None for an agent without a branch.

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
        """After the last generation: the summary of the changes, or None. An unreadable branch is
        kept and read again at the next start of this host."""
        try:
            return await self._seal(entry.agent_id, entry.spec.name)
        except (OSError, ValueError) as error:
            self._unreadable.add(entry.agent_id)
            log.error(
                "cannot process a branch; it is kept", agent_id=entry.agent_id, reason=str(error)
            )
            return None

    async def clean_up(self, agent_id: str) -> None:
        """Remove the branch of an ended agent if it needs no review. Raises OSError."""
        async with self._lock:
            if agent_id not in self._summaries and agent_id not in self._unreadable:
                await asyncio.to_thread(self._remove, agent_id)

    def drop(self, agent_id: str) -> None:
        """Remove the files of an agent that never ran. Raises OSError."""
        home.remove(self._directory / agent_id)

    def page(self) -> list[dict[str, Any]]:
        """All pending reviews, oldest first."""
        return sorted(
            self._summaries.values(), key=lambda review: (review["sealed_at"], review["agent_id"])
        )

    async def show(self, agent_id: str, start: int, limit: int) -> dict[str, Any]:
        """Raises NotFound or ValidationError."""
        if start < 0 or not 1 <= limit <= pages.MAX_PAGE:
            detail = f"must be from 1 to {pages.MAX_PAGE}, with a start of at least 0"
            raise ValidationError(
                f"invalid limit: {detail}", errors=[{"pointer": "?limit", "detail": detail}]
            )
        review = await asyncio.to_thread(self._read_review, agent_id)
        return await asyncio.to_thread(
            pages.page, review, self._sealed_path(agent_id), start, limit
        )

    async def commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        """Apply the review. Raises NotFound, PreconditionFailed (another digest), ReviewConflict or
        BackendError and leaves the workspace unchanged. Continues if the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._commit(agent_id, digest, by)))

    async def discard(self, agent_id: str, by: str) -> dict[str, Any]:
        """Remove branch and review, even an unreadable one. Raises NotFound. Continues if the
        caller is cancelled."""
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
                    f"cannot commit {agent_id}: "
                    f"{len(error.reasons)} paths changed in the workspace; {_outcome(error)}",
                    hint="undo these changes in the workspace, or discard the review",
                    id=agent_id,
                    conflicts=conflicts,
                ) from error
            except OSError as error:
                raise BackendError(
                    f"cannot commit {agent_id}: {error.strerror}; the workspace is unchanged",
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
            )  # an unreadable branch has no digest
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
        """Move the branch to a directory that no grant names before reading it; its processes have
        ended."""
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
        """For an agent that restarts although its end was being stored."""
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
        """The baseline is removed last: until then the branch is found again after a crash."""
        directory = home.agent_dir(self._paths, agent_id)
        for name in (WORK, SEALED):
            home.remove(directory / name)
        home.remove(self._directory / agent_id)
        with contextlib.suppress(OSError):  # home and tmp may still exist
            directory.rmdir()

    def _sealed_path(self, agent_id: str) -> Path:
        return home.agent_dir(self._paths, agent_id) / SEALED

    def _file_path(self, agent_id: str, name: str) -> Path:
        return self._directory / agent_id / name


def _outcome(conflicts: Conflicts) -> str:
    if not conflicts.preserved:
        return "nothing was applied"
    preserved = [
        f"{escape_invisible(path)} (previous file: {previous})"
        if previous
        else escape_invisible(path)
        for path, previous in conflicts.preserved.items()
    ]
    return (
        f"concurrent changes are kept: {', '.join(preserved[:_MAX_LISTED])}; "
        "nothing else was applied"
    )


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

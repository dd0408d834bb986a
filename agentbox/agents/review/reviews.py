"""Branches of this host's agents, from creation to the operator's decision. Files are
authoritative; memory has only the list of reviews."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.review import branch, pages
from agentbox.agents.review.borrowed_branch import borrow
from agentbox.agents.review.branch import Branch, ReportProgress
from agentbox.agents.review.branch_sealer import BranchSealer
from agentbox.agents.review.commits.extraction import SECONDS, CommitExtractor
from agentbox.agents.review.commits.reading import (
    CommitReader,
    TakenCommits,
    check_rest,
    record_of,
)
from agentbox.agents.review.conflicts import MAX_LISTED, Conflicts
from agentbox.agents.review.review_files import ReviewFiles, review_not_found
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import protected_dirs, resolve_in_box
from agentbox.core.linux.path_opener import Boundary
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import (
    BackendError,
    ReviewConflict,
    SpawnError,
    ValidationError,
)
from agentbox.core.visible_text import escape_invisible
from agentbox.policy.profiles import UNRESTRICTED

log = structlog.get_logger()

EmitEvent = Callable[[LifecycleEvent], Awaitable[None]]


def uses_branch(entry: AgentRecord) -> bool:
    """True for an agent that may write the workspace, unless its spec asks to write it directly, or
    it works in the branch of another."""
    return (
        entry.branch_of is None
        and entry.grant_set.workspace == "branch"
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

    def __init__(
        self, paths: Paths, directory: Path, emit_event: EmitEvent, extractor: CommitExtractor
    ) -> None:
        self._paths, self._files = paths, ReviewFiles(paths, directory)
        self._emit_event, self._sealer = emit_event, BranchSealer(self._files, extractor)
        self.commits = CommitReader(paths, self._files)
        self._summaries: dict[str, dict[str, Any]] = {}  # by agent id
        self._unreadable: set[str] = set()  # ids of agents whose branch could not be read
        self._lock = asyncio.Lock()

    async def load(self, running: frozenset[str]) -> None:
        """Recover what an earlier process left: interrupted commits are completed or rolled back,
        and branches of agents that no longer run are sealed. Their commits share the time of one,
        so that this host starts even if all of them are slow to read."""
        deadline = time.monotonic() + SECONDS
        for agent_id in await asyncio.to_thread(self._files.agent_ids):
            try:
                recovered = await asyncio.to_thread(self._files.recover_commit, agent_id)
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
                    await self._seal(agent_id, "", max(1.0, deadline - time.monotonic()))
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
        following links made by agents. None for an agent without a branch; that of the agent that
        it serves for one that works in a branch of another.

        Raises SpawnError (stage branch).
        """
        if entry.branch_of is not None:
            return await asyncio.to_thread(borrow, self._paths, self._files, entry)
        if not uses_branch(entry):
            return None
        directory = resolve_in_box(self._paths, home.agent_dir(self._paths, entry.agent_id))
        baseline_path = self._files.baseline_path(entry.agent_id)
        boundary = Boundary(protected=protected_dirs(self._paths))
        committer = (entry.spec.name, f"{entry.agent_id}@agentbox.invalid")

        def create() -> Branch:
            if self._files.unseal(entry.agent_id, directory):
                self._summaries.pop(entry.agent_id, None)
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

    async def preview(self, agent_id: str) -> list[str]:
        """Changed paths of a branch whose agent may still write it. Raises BackendError."""
        try:
            return await asyncio.to_thread(self._files.changed_paths, agent_id)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BackendError(
                f"cannot compare the branch of {agent_id}: {reason}",
                slot="orchestrator",
                impl="local-process",
            ) from error

    async def clean_up(self, agent_id: str) -> None:
        """Remove the branch of an ended agent if it needs no review. Raises OSError."""
        async with self._lock:
            if agent_id not in self._summaries and agent_id not in self._unreadable:
                await asyncio.to_thread(self._files.remove, agent_id)

    def drop(self, agent_id: str) -> None:
        """Remove the files of an agent that never ran. Raises OSError."""
        self._files.drop(agent_id)

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
        review = await asyncio.to_thread(self._files.read, agent_id)
        sealed = self._files.sealed_path(agent_id)
        return await asyncio.to_thread(pages.page, review, sealed, start, limit)

    async def commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        """Apply the review. Raises NotFound, PreconditionFailed (another digest), ReviewConflict or
        BackendError and leaves the workspace unchanged. Continues if the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._commit(agent_id, digest, by)))

    async def end_with_commits(
        self, agent_id: str, digest: str, taken: TakenCommits, by: str
    ) -> dict[str, Any]:
        """End the review: its commits are in the operator's repository. Raises NotFound,
        ValidationError, PreconditionFailed, TipDiffers or what `record_of` raises. Continues if the
        caller is cancelled."""
        taken.check()
        task = asyncio.create_task(self._end_with_commits(agent_id, digest, taken, by))
        return await asyncio.shield(task)

    async def discard(self, agent_id: str, by: str) -> dict[str, Any]:
        """Remove branch and review, even an unreadable one. Raises NotFound. Continues if the
        caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._discard(agent_id, by)))

    async def _commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        async with self._lock:
            review = await asyncio.to_thread(self._files.read_current, agent_id, digest)
            try:
                changed = await asyncio.to_thread(self._files.apply, review)
            except Conflicts as error:
                conflicts = {
                    escape_invisible(path): reason
                    for path, reason in sorted(error.reasons.items())[:MAX_LISTED]
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
                    f"{len(error.reasons)} paths changed in the workspace; {error.outcome()}",
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

    async def _end_with_commits(
        self, agent_id: str, digest: str, taken: TakenCommits, by: str
    ) -> dict[str, Any]:
        async with self._lock:
            review = await asyncio.to_thread(self._files.read_current, agent_id, digest)
            record = record_of(review)
            check_rest(agent_id, record, with_rest=taken.with_rest)
            data = {
                "by": by,
                "digest": digest,
                "paths": len(review.changes),
                "changed": 0,
                "commits": record.count,
                "tip": taken.tip,
                "ref": escape_invisible(taken.ref),
            }
            await self._close_review(agent_id, LifecycleEvent("review.committed", agent_id, data))
            return {"agent_id": agent_id, "digest": digest, "changed": 0}

    async def _discard(self, agent_id: str, by: str) -> dict[str, Any]:
        async with self._lock:
            summary = self._summaries.get(agent_id)
            if summary is None and agent_id not in self._unreadable:
                raise review_not_found(agent_id)
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
        await asyncio.to_thread(self._files.remove, agent_id)

    async def _seal(
        self, agent_id: str, name: str, seconds: float = SECONDS
    ) -> dict[str, Any] | None:
        is_new = not self._files.has_review(agent_id)
        review = await self._sealer.load_or_seal(agent_id, name, seconds)
        if review is None:
            return None
        summary = self._summaries[agent_id] = pages.summary(review)
        if is_new:
            data = {
                name: summary[name]
                for name in (
                    *("digest", "added", "modified", "deleted"),
                    *("runs_by_itself", "left_out", "commits"),
                )
            }
            await self._emit_event(
                LifecycleEvent("review.sealed", agent_id, {"name": summary["name"], **data})
            )
        return summary

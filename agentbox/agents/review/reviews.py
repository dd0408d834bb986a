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

from agentbox.agents.admission.confinement import closed, in_box
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.store import Happening
from agentbox.agents.review import branch, journal, listing, pages
from agentbox.agents.review.apply import Conflicts, Taker
from agentbox.agents.review.branch import WORK, Branch, Told
from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import compare
from agentbox.agents.runs import home
from agentbox.core.files.atomic import read_json, replace
from agentbox.core.linux.opening import Boundary
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import (
    BackendError,
    NotFound,
    PreconditionFailed,
    ReviewConflict,
    SpawnError,
    ValidationError,
)
from agentbox.core.visible import visible
from agentbox.policy.profiles import UNRESTRICTED

log = structlog.get_logger()
SEALED: Final = "sealed"
_START, _REVIEW, _COMMIT = "start.jsonl", "review.json", "commit.json"
_TOLD: Final = 100  # conflicts that an answer names

Tell = Callable[[Happening], Awaitable[None]]


def works_in_branch(entry: Entry) -> bool:
    """Whoever may write the workspace, unless the spec says that it writes the workspace itself."""
    return (
        entry.holding.workspace == "branch"
        and entry.holding.root != UNRESTRICTED
        and any(
            right.scope == "fs" and right.mode == "allow" and "write" in right.operations
            and any(pattern.startswith("$WORKSPACE") for pattern in right.patterns)
            for right in (grant.right for grant in entry.holding.grants)
        )
    )  # fmt: skip


class Reviews:
    """`folder`: where lists, reviews and journals are kept, one folder an agent. `tell` is given each event, in order."""

    def __init__(self, paths: Paths, folder: Path, tell: Tell) -> None:
        self._paths, self._folder, self._tell = paths, folder, tell
        self._known: dict[str, dict[str, Any]] = {}  # summaries, by agent
        self._unread: set[str] = set()  # agents whose branch could not be looked at
        self._busy = asyncio.Lock()

    async def load(self, living: frozenset[str]) -> None:
        """What an earlier process of this host left: a commit that was cut off is finished or undone, and a branch of an
        agent that lives no more is sealed."""
        for agent_id in await asyncio.to_thread(lambda: sorted(path.name for path in _folders(self._folder))):
            try:
                found = await asyncio.to_thread(journal.recover, self._at(agent_id, _COMMIT))
                if found is not None:
                    about = {"phase": found.phase, "kept": {visible(path): old for path, old in found.kept.items()}}
                    log.warning("a commit was cut off", agent_id=agent_id, **about)
                    await self._tell(Happening("review.recovered", agent_id, about))
                if agent_id not in living:
                    await self._seal(agent_id, "")
                    await self.tidy(agent_id)
            except (OSError, ValueError) as error:
                self._unread.add(agent_id)
                log.error("a branch is kept as it is", agent_id=agent_id, reason=str(error))

    async def branch_of(self, entry: Entry, folder: Path, told: Told) -> Branch | None:
        """Where that agent works: a copy of `folder`, made at its first start; no link is followed that agents may have
        put there. None for one that works in the workspace itself, or not at all.

        Raises SpawnError (stage branch).
        """
        if not works_in_branch(entry):
            return None
        place = in_box(self._paths, home.of_agent(self._paths, entry.agent_id))
        start, limit = self._at(entry.agent_id, _START), Boundary(closed=closed(self._paths))
        who = (entry.spec.name, f"{entry.agent_id}@agentbox.invalid")

        def make() -> Branch:
            self._unseal(entry.agent_id, place)
            return branch.make(folder, place, start, who, told, limit)

        try:
            return await asyncio.to_thread(make)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise SpawnError(f"cannot copy the workspace for {entry.spec.name}: {why}", stage="branch") from error

    async def seal(self, entry: Entry) -> dict[str, Any] | None:
        """After the last life: what changed, or None. A branch that cannot be read is kept, and looked at again at the
        next start of this host."""
        try:
            return await self._seal(entry.agent_id, entry.spec.name)
        except (OSError, ValueError) as error:
            self._unread.add(entry.agent_id)
            log.error("a branch is kept as it is", agent_id=entry.agent_id, reason=str(error))
            return None

    async def tidy(self, agent_id: str) -> None:
        """Of an agent that is over: removes a branch that nobody needs to see, once no commit or discard removes it. Raises OSError."""
        async with self._busy:
            if agent_id not in self._known and agent_id not in self._unread:
                await asyncio.to_thread(self._remove, agent_id)

    def forget(self, agent_id: str) -> None:
        """Of an agent that never ran. Raises OSError."""
        home.remove(self._folder / agent_id)

    def page(self) -> list[dict[str, Any]]:
        """All reviews that wait, oldest first."""
        return sorted(self._known.values(), key=lambda one: (one["sealed_at"], one["agent_id"]))

    async def show(self, agent_id: str, at: int, limit: int) -> dict[str, Any]:
        """Raises NotFound or ValidationError."""
        if at < 0 or not 1 <= limit <= pages.MOST_ON_A_PAGE:
            detail = f"must be from 1 to {pages.MOST_ON_A_PAGE}, from a place that is not below 0"
            raise ValidationError(f"cannot take limit: it {detail}", errors=[{"pointer": "?limit", "detail": detail}])
        review = await asyncio.to_thread(self._read, agent_id)
        return await asyncio.to_thread(pages.page, review, self._sealed(agent_id), at, limit)

    async def commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        """Takes what was shown. Raises NotFound, PreconditionFailed (another digest), ReviewConflict or BackendError; the
        workspace is then as it was. Goes on when the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._commit(agent_id, digest, by)))

    async def discard(self, agent_id: str, by: str) -> dict[str, Any]:
        """Removes branch and review, also of a branch that could not be looked at. Raises NotFound. Goes on when the caller is cancelled."""
        return await asyncio.shield(asyncio.create_task(self._discard(agent_id, by)))

    async def _commit(self, agent_id: str, digest: str, by: str) -> dict[str, Any]:
        async with self._busy:
            review = await asyncio.to_thread(self._read, agent_id)
            if digest != review.digest:
                raise PreconditionFailed(f"cannot commit {agent_id}: its digest is {review.digest}", etag=review.digest)
            try:
                taken = await asyncio.to_thread(self._take, review)
            except Conflicts as error:
                shown = {visible(path): why for path, why in sorted(error.found.items())[:_TOLD]}
                about = {"by": by, "digest": digest, "conflicts": len(error.found), "paths": list(shown)}
                await self._tell(Happening("review.conflicted", agent_id, about))
                raise ReviewConflict(
                    f"cannot commit {agent_id}: {len(error.found)} paths changed in the workspace; {_outcome(error)}",
                    hint="take them back there, or discard the review", id=agent_id, conflicts=shown,
                ) from error  # fmt: skip
            except OSError as error:
                raise BackendError(
                    f"cannot commit {agent_id}: {error.strerror}; the workspace is as it was",
                    slot="orchestrator", impl="local-process",
                ) from error  # fmt: skip
            about = {"by": by, "digest": digest, "paths": len(review.changes), "changed": taken}
            await self._end(agent_id, Happening("review.committed", agent_id, about))
            return {"agent_id": agent_id, "digest": digest, "changed": taken}

    async def _discard(self, agent_id: str, by: str) -> dict[str, Any]:
        async with self._busy:
            known = self._known.get(agent_id)
            if known is None and agent_id not in self._unread:
                raise _not_found(agent_id)
            digest = "" if known is None else known["digest"]  # of a branch that could not be looked at there is none
            about = {"by": by, "digest": digest}
            await self._end(agent_id, Happening("review.discarded", agent_id, about))
            return {"agent_id": agent_id, "digest": digest}

    async def _end(self, agent_id: str, happened: Happening) -> None:
        await self._tell(happened)
        self._known.pop(agent_id, None)
        self._unread.discard(agent_id)
        await asyncio.to_thread(self._remove, agent_id)

    async def _seal(self, agent_id: str, name: str) -> dict[str, Any] | None:
        fresh = not self._at(agent_id, _REVIEW).exists()
        review = await asyncio.to_thread(self._sealed_review, agent_id, name)
        if review is None:
            return None
        known = self._known[agent_id] = pages.summary(review)
        if fresh:
            about = {
                name: known[name] for name in ("digest", "added", "modified", "deleted", "runs_by_itself", "left_out")
            }
            await self._tell(Happening("review.sealed", agent_id, {"name": known["name"], **about}))
        return known

    def _sealed_review(self, agent_id: str, name: str) -> Review | None:
        """Moved out of every grant first: the branch's folders are named by none, and its processes are gone."""
        if self._at(agent_id, _REVIEW).exists():
            return self._read(agent_id)
        work, sealed = home.of_agent(self._paths, agent_id) / WORK, self._sealed(agent_id)
        if work.is_dir() and not sealed.exists():
            work.rename(sealed)
        if not sealed.is_dir():
            return None
        start = listing.read(self._at(agent_id, _START))
        workspace = in_box(self._paths, self._paths.workspace) if start is None else Path(start.workspace)
        found = compare(sealed, workspace, {} if start is None else start.rows)
        if not found.changes:
            return None
        review = Review(
            agent_id=agent_id, name=name, workspace=str(workspace), sealed_at=time.time(), changes=tuple(found.changes),
            left_out=tuple(found.left_out), emptied=tuple(found.emptied),
        )  # fmt: skip
        replace(self._at(agent_id, _REVIEW), json.dumps(review.to_json()).encode("ascii"), mode=0o600)
        return review

    def _unseal(self, agent_id: str, folder: Path) -> None:
        """For an agent that starts again although its end was being written down."""
        if (folder / SEALED).is_dir() and not (folder / WORK).exists():
            self._at(agent_id, _REVIEW).unlink(missing_ok=True)
            (folder / SEALED).rename(folder / WORK)
            self._known.pop(agent_id, None)

    def _take(self, review: Review) -> int:
        taker = Taker(Path(review.workspace), self._sealed(review.agent_id), self._at(review.agent_id, _COMMIT), review)
        with contextlib.closing(taker):
            return taker.take()

    def _read(self, agent_id: str) -> Review:
        try:
            said = read_json(self._at(agent_id, _REVIEW)) if _is_name(agent_id) else None
            if said is None:
                raise _not_found(agent_id)
            return Review.from_json(said)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BackendError(
                f"cannot read the review of {agent_id}: {error}", slot="orchestrator", impl="local-process"
            ) from error

    def _remove(self, agent_id: str) -> None:
        """The list goes last: with it the branch is known again after a crash."""
        folder = home.of_agent(self._paths, agent_id)
        for name in (WORK, SEALED):
            home.remove(folder / name)
        home.remove(self._folder / agent_id)
        with contextlib.suppress(OSError):  # home and tmp may still be there
            folder.rmdir()

    def _sealed(self, agent_id: str) -> Path:
        return home.of_agent(self._paths, agent_id) / SEALED

    def _at(self, agent_id: str, name: str) -> Path:
        return self._folder / agent_id / name


def _outcome(refused: Conflicts) -> str:
    if not refused.kept:
        return "nothing was taken"
    before = [
        f"{visible(path)} (the file before it: {old})" if old else visible(path) for path, old in refused.kept.items()
    ]
    return f"what was written there meanwhile is kept: {', '.join(before[:_TOLD])}; nothing else was taken"


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from folder.iterdir()


def _is_name(agent_id: str) -> bool:
    return "/" not in agent_id and "\0" not in agent_id and not agent_id.startswith(".") and bool(agent_id)


def _not_found(agent_id: str) -> NotFound:
    return NotFound(f"cannot find a review of agent {visible(agent_id)}", resource="review", id=agent_id)

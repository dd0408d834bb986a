"""The files of a review: the sealed branch, its baseline, the stored review, the commit journal."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from agentbox.agents.review import baseline, journal
from agentbox.agents.review.apply import ReviewApplier
from agentbox.agents.review.branch import WORK
from agentbox.agents.review.change import Review
from agentbox.agents.review.commits.history import SealedHistory, inspect
from agentbox.agents.review.commits.record import CommitsRecord
from agentbox.agents.review.compare import BranchComparison, compare
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import resolve_in_box
from agentbox.core.files.atomic import read_json, replace
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import BackendError, NotFound, PreconditionFailed
from agentbox.core.visible_text import escape_invisible

SEALED, COMMITS = "sealed", "commits"
_BASELINE_FILE, _REVIEW_FILE, _COMMIT_FILE = "start.jsonl", "review.json", "commit.json"


@frozen
class SealedBranch:
    """`path` is the sealed copy, `workspace` the directory that was copied, `objects` the git
    object directories that it borrows from."""

    path: Path
    workspace: Path
    comparison: BranchComparison
    objects: tuple[str, ...]
    history: SealedHistory


class ReviewFiles:
    """All calls block. `directory`: one directory per agent, beside its branch."""

    def __init__(self, paths: Paths, directory: Path) -> None:
        self._paths, self._directory = paths, directory

    def agent_ids(self) -> list[str]:
        """The agents that have files here."""
        return sorted(path.name for path in _subdirectories(self._directory))

    def baseline_path(self, agent_id: str) -> Path:
        return self._file_path(agent_id, _BASELINE_FILE)

    def sealed_path(self, agent_id: str) -> Path:
        return home.agent_dir(self._paths, agent_id) / SEALED

    def commits_path(self, agent_id: str) -> Path:
        """Directory of the files made from the agent's commits."""
        return home.agent_dir(self._paths, agent_id) / COMMITS

    def has_review(self, agent_id: str) -> bool:
        return self._file_path(agent_id, _REVIEW_FILE).exists()

    def recover_commit(self, agent_id: str) -> journal.RecoveredCommit | None:
        """Complete or roll back an interrupted commit. Raises OSError, ValueError."""
        return journal.recover(self._file_path(agent_id, _COMMIT_FILE))

    def read(self, agent_id: str) -> Review:
        """Raises NotFound, BackendError."""
        try:
            data = (
                read_json(self._file_path(agent_id, _REVIEW_FILE))
                if _is_safe_name(agent_id)
                else None
            )
            if data is None:
                raise review_not_found(agent_id)
            return Review.from_json(data)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BackendError(
                f"cannot read the review of {agent_id}: {error}",
                slot="orchestrator",
                impl="local-process",
            ) from error

    def read_current(self, agent_id: str, digest: str) -> Review:
        """Raises what `read` raises, and PreconditionFailed if it has another digest."""
        review = self.read(agent_id)
        if digest != review.digest:
            raise PreconditionFailed(
                f"cannot commit {agent_id}: its digest is {review.digest}", etag=review.digest
            )
        return review

    def seal(self, agent_id: str) -> SealedBranch | None:
        """Move the branch to a directory that no grant names, then compare it; its processes have
        ended. None without a branch. Raises OSError, ValueError."""
        work, sealed = home.agent_dir(self._paths, agent_id) / WORK, self.sealed_path(agent_id)
        if work.is_dir() and not sealed.exists():
            work.rename(sealed)
        if not sealed.is_dir():
            return None
        recorded = baseline.read(self.baseline_path(agent_id))
        workspace = (
            resolve_in_box(self._paths, self._paths.workspace)
            if recorded is None
            else Path(recorded.workspace)
        )
        objects = () if recorded is None else recorded.objects
        return SealedBranch(
            path=sealed,
            workspace=workspace,
            comparison=compare(sealed, workspace, {} if recorded is None else recorded.rows),
            objects=objects,
            history=inspect(sealed, workspace, None if recorded is None else recorded.git, objects),
        )

    def changed_paths(self, agent_id: str) -> list[str]:
        """Of a branch that is not sealed, or is. Raises OSError, ValueError."""
        work, sealed = home.agent_dir(self._paths, agent_id) / WORK, self.sealed_path(agent_id)
        branch = work if work.is_dir() else sealed
        recorded = baseline.read(self.baseline_path(agent_id))
        if recorded is None or not branch.is_dir():
            return []
        comparison = compare(branch, Path(recorded.workspace), recorded.rows)
        return [change.path for change in comparison.changes]

    def store(
        self, agent_id: str, name: str, branch: SealedBranch, commits: CommitsRecord | None
    ) -> Review:
        """Write the review of a sealed branch. Raises OSError."""
        comparison = branch.comparison
        review = Review(
            agent_id=agent_id,
            name=name,
            workspace=str(branch.workspace),
            sealed_at=time.time(),
            changes=tuple(comparison.changes),
            left_out=tuple(comparison.skipped),
            emptied=tuple(comparison.emptied),
            commits=commits,
        )
        replace(
            self._file_path(agent_id, _REVIEW_FILE),
            json.dumps(review.to_json()).encode("ascii"),
            mode=0o600,
        )
        return review

    def unseal(self, agent_id: str, directory: Path) -> bool:
        """For an agent that restarts although its end was being stored; whether it was sealed."""
        if not (directory / SEALED).is_dir() or (directory / WORK).exists():
            return False
        self._file_path(agent_id, _REVIEW_FILE).unlink(missing_ok=True)
        home.remove(directory / COMMITS)
        (directory / SEALED).rename(directory / WORK)
        return True

    def apply(self, review: Review) -> int:
        """Apply the changes to the workspace; their number. Raises OSError, Conflicts."""
        applier = ReviewApplier(
            Path(review.workspace),
            self.sealed_path(review.agent_id),
            self._file_path(review.agent_id, _COMMIT_FILE),
            review,
        )
        with contextlib.closing(applier):
            return applier.apply()

    def remove(self, agent_id: str) -> None:
        """The baseline is removed last: until then the branch is found again after a crash."""
        directory = home.agent_dir(self._paths, agent_id)
        for name in (WORK, SEALED, COMMITS):
            home.remove(directory / name)
        self.drop(agent_id)
        with contextlib.suppress(OSError):  # home and tmp may still exist
            directory.rmdir()

    def drop(self, agent_id: str) -> None:
        """Remove all but the branch."""
        home.remove(self._directory / agent_id)

    def _file_path(self, agent_id: str, name: str) -> Path:
        return self._directory / agent_id / name


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


def review_not_found(agent_id: str) -> NotFound:
    """The error for an agent without a review."""
    return NotFound(
        f"cannot find a review of agent {escape_invisible(agent_id)}",
        resource="review",
        id=agent_id,
    )

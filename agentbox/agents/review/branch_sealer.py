"""Makes the review of an ended agent's branch: its files, and its commits."""

import asyncio
import time

from agentbox.agents.review.change import Review
from agentbox.agents.review.commits.extraction import SECONDS, CommitExtractor
from agentbox.agents.review.review_files import ReviewFiles


class BranchSealer:
    """Once for each agent that has ended."""

    def __init__(self, files: ReviewFiles, extractor: CommitExtractor) -> None:
        self._files, self._extractor = files, extractor

    async def load_or_seal(
        self, agent_id: str, name: str, seconds: float = SECONDS
    ) -> Review | None:
        """The stored review, or a new one. None without changes and commits. Commits are read for
        at most `seconds`. Raises OSError, ValueError, BackendError."""
        if self._files.has_review(agent_id):
            return await asyncio.to_thread(self._files.read, agent_id)
        sealed = await asyncio.to_thread(self._files.seal, agent_id)
        if sealed is None:
            return None
        commits = await self._extractor.extract(
            sealed.history,
            agent_id=agent_id,
            name=name,
            sealed=sealed.path,
            directory=self._files.commits_path(agent_id),
            objects=sealed.objects,
            changes=sealed.comparison.changes,
            when=time.time(),
            seconds=seconds,
        )
        if not sealed.comparison.changes and (commits is None or not commits.has_commits):
            return None
        return await asyncio.to_thread(self._files.store, agent_id, name, sealed, commits)

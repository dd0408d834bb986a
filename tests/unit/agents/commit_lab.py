"""Branches whose repositories a test writes as an agent could, and their reviews by the real code:
own reading of refs, a real launcher, git in its sandbox."""

import itertools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.host_configs import host_config

from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.review import branch
from agentbox.agents.review.commits.extraction import CommitExtractor
from agentbox.agents.review.reviews import ReviewManager
from agentbox.agents.runs import home
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher.client import LauncherClient

WHEN = "2026-01-02T03:04:05Z"


def git(at: Path, *words: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> str:
    """The output of git without the last line break; with no configuration but the repository's."""
    done = subprocess.run(
        ["git", *words],
        cwd=at,
        input=data,
        capture_output=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_DATE": WHEN for who in ("AUTHOR", "COMMITTER")},
            **(env or {}),
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def commit(at: Path, message: str = "change", **files: str) -> str:
    """Write the files (`__` in a name stands for a dot) and commit everything; the commit's id."""
    for name, content in files.items():
        (at / name.replace("__", ".")).write_text(content)
    git(at, "add", "-A")
    git(at, "commit", "-q", "--allow-empty", "-m", message)
    return git(at, "rev-parse", "HEAD")


class CommitLab:
    """A box's directories. The workspace is `workspace` if that is given, else a new repository of
    one commit."""

    def __init__(self, root: Path, launcher: LauncherClient, workspace: Path | None = None) -> None:
        self.paths = Paths(root)
        self.workspace = workspace or self.paths.workspace
        if workspace is None:
            self.workspace.mkdir(parents=True)
            git(self.workspace, "init", "-q", "-b", "main")
            self.start = commit(self.workspace, "start", file="one\n")
        self.events: list[LifecycleEvent] = []
        extractor = CommitExtractor(host_config(self.paths), launcher, "mark")
        self.reviews = ReviewManager(self.paths, root / "reviews", self._emit, extractor)
        self._root, self._numbers = root, itertools.count()

    async def _emit(self, event: LifecycleEvent) -> None:
        self.events.append(event)

    def begin(self) -> tuple[str, Path]:
        """A new branch: its id, and the copy that the agent works in."""
        agent_id = f"agent-{next(self._numbers)}"
        directory = home.agent_dir(self.paths, agent_id)
        made = branch.create(
            self.workspace,
            directory,
            self._root / "reviews" / agent_id / "start.jsonl",
            ("a", "a@example.org"),
        )
        return agent_id, made.work

    async def page(self, agent_id: str) -> dict[str, Any]:
        """Seal the branch; its commits as callers see them."""
        await self.reviews.load(frozenset())
        return await self.reviews.commits.show(agent_id, 0, 1000)

    def made(self, agent_id: str) -> Path:
        """Where the files made from the commits are."""
        return home.agent_dir(self.paths, agent_id) / "commits/out"

    async def failure(self, agent_id: str) -> AdapterError:
        """Why nothing of that branch can be taken; its review is there all the same."""
        with pytest.raises(AdapterError) as caught:
            await self.page(agent_id)
        assert agent_id in {one["agent_id"] for one in self.reviews.page()}
        assert caught.value.message.isprintable()
        return caught.value

    async def end(self) -> None:
        """Discard every review."""
        for one in self.reviews.page():
            await self.reviews.discard(one["agent_id"], "test")

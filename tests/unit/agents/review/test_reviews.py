"""Pending reviews: what happens to one that is discarded, or whose branch cannot be read."""

import asyncio
from pathlib import Path

import pytest
from support.host_configs import host_config

from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.review import compare
from agentbox.agents.review.commits.extraction import CommitExtractor
from agentbox.agents.review.reviews import ReviewManager
from agentbox.agents.runs import home
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import NotFound
from agentbox.sandbox.launcher.client import LauncherClient


async def test_a_branch_that_cannot_be_looked_at_is_kept_and_can_be_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent host still starts, and nothing is lost before the operator discards it."""
    told: list[str] = []

    async def tell(happened: LifecycleEvent) -> None:
        told.append(happened.type)

    monkeypatch.setattr(compare, "MAX_PATHS", 0)
    paths = Paths(tmp_path)
    branch = home.agent_dir(paths, "id")
    (branch / "work").mkdir(parents=True)
    (branch / "work/file").touch()
    (tmp_path / "reviews/id").mkdir(parents=True)
    reviews = ReviewManager(
        paths, tmp_path / "reviews", tell, CommitExtractor(host_config(paths), LauncherClient(), "")
    )
    await reviews.load(frozenset())
    await reviews.clean_up("id")
    assert reviews.page() == []
    assert (branch / "sealed/file").exists()
    assert await reviews.discard("id", "operator") == {"agent_id": "id", "digest": ""}
    assert told == ["review.discarded"]
    assert not branch.exists()
    with pytest.raises(NotFound):
        await reviews.discard("id", "operator")


async def test_a_review_that_is_discarded_while_the_agent_is_tidied_away(tmp_path: Path) -> None:
    """Both remove the branch; neither fails for what the other removed."""

    async def tell(_: LifecycleEvent) -> None:
        pass

    paths = Paths(tmp_path)
    work = home.agent_dir(paths, "id") / "work"
    work.mkdir(parents=True)
    for number in range(2000):
        (work / str(number)).touch()
    (tmp_path / "reviews/id").mkdir(parents=True)
    (tmp_path / "workspace").mkdir(parents=True)
    reviews = ReviewManager(
        paths, tmp_path / "reviews", tell, CommitExtractor(host_config(paths), LauncherClient(), "")
    )
    await reviews.load(frozenset())
    assert reviews.page()
    discarded = asyncio.create_task(reviews.discard("id", "operator"))
    while not discarded.done():
        await reviews.clean_up("id")
        await asyncio.sleep(0)
    await discarded
    assert not home.agent_dir(paths, "id").exists()

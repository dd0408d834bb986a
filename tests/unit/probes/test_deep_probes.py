"""A deep probe has failed when it failed with a fair share of the processor."""

import sys
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.prefix_box import default_programs, make_plan

from agentbox.box.readiness.requirements.deep_probes import ArtifactsRequirement
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

NOT_WHEN_IDLE = "import os, sys; sys.exit(os.nice(0) >= 19)"


def probe(name: str, code: str) -> Probe:
    return Probe(
        id=name, feature="core", kind="exec", stage="deep", argv=(sys.executable, "-c", code)
    )


@pytest.fixture
def asked(tmp_path: Path) -> ArtifactsRequirement:
    """A probe that passes at once, one that never gets through at idle priority, and one that is broken."""
    probes = (
        probe("fine", ""),
        probe("starved", NOT_WHEN_IDLE),
        probe("broken", "raise SystemExit(3)"),
    )
    return ArtifactsRequirement(
        Paths(tmp_path), make_plan(1, default_programs(1), probes=probes), lambda: True
    )


async def test_what_fails_at_idle_priority_is_asked_again(asked: ArtifactsRequirement) -> None:
    """Only what fails both times is missing, each probe has one result, and the homes of the probes
    are removed."""
    assert await asked.check() == ()
    await wait_until(lambda: bool(asked.results), "a deep run ends", seconds=60)
    assert await asked.check() == ("artifact:broken failed",)
    assert sorted(result.id for result in asked.results) == ["broken", "fine", "starved"]
    assert list(asked._paths.probe_homes.iterdir()) == []

"""The mounted manifest is compared only once it is complete: one that is being written is not
reported as invalid."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.plans import SYSTEM, lock_of
from test_apply import text

from agentbox.api.background.mounted_manifest import INVALID, MountedManifest
from agentbox.api.plan_source import PlanSource
from agentbox.core.paths import Paths
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes

LEASE = "adapters.beads.lease_seconds"


@dataclass
class InForce:
    """What a comparison needs of the API."""

    plans: PlanSource
    paths: Paths


@pytest.fixture
def in_force(tmp_path: Path) -> InForce:
    """A box's plan, with the manifest that it was built from in place."""
    paths = Paths(tmp_path)
    for folder in (paths.manifest.parent, paths.share):
        folder.mkdir(parents=True)
    paths.manifest.write_text(text())
    manifest, features = parse(text().encode(), "agentbox.toml"), load_features()
    lock = lock_of(enabled_features(manifest, features))
    paths.lock.write_bytes(lock_bytes(lock))
    plan = build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM)
    return InForce(PlanSource(plan), paths)


HALF = text().index("[adapters]")  # a manifest of its own


@pytest.mark.parametrize("so_far", [0, 40, HALF])
def test_a_file_that_is_being_written(in_force: InForce, so_far: int) -> None:
    """Truncated when it is read, complete a moment later: the change is reported, and no invalid
    file."""
    mounted = MountedManifest(in_force.plans, in_force.paths)
    whole = text(lease=7).encode()
    assert mounted.compare().keys == {}
    with in_force.paths.manifest.open("wb", buffering=0) as stream:
        stream.write(whole[:so_far])
        rest = threading.Timer(0.2, lambda: os.pwrite(stream.fileno(), whole[so_far:], so_far))
        rest.start()
        found = mounted.compare()
        rest.join()
    assert found.keys == {"live": (LEASE,)}


def test_a_file_that_stays_broken(in_force: InForce) -> None:
    """Reported with its reason at every check, and no longer once it is fixed."""
    mounted = MountedManifest(in_force.plans, in_force.paths)
    in_force.paths.manifest.write_text("[meta\n")
    for _ in range(2):
        found = mounted.compare()
        assert found.keys == {INVALID: ()}
        assert found.error.startswith("invalid: E000")
    in_force.paths.manifest.write_text(text())
    assert mounted.compare().keys == {}

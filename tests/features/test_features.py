"""Every feature locks, builds, boots in a real container, and its probes are green there."""

from __future__ import annotations

import pytest
from desk import Desk
from manifests import wanted
from record import record
from trial import Row, Trial

from agentbox.features import load_features

FEATURES = load_features()


@pytest.mark.timeout(7200)
def test_a_feature_works(name: str, desk: Desk, keeps: bool) -> None:
    """Locked, built, booted, probed, its commands found by agents. A feature of another package source is refused
    before anything is locked; one whose device this machine lacks is built."""
    feature, asked = FEATURES[name], wanted(FEATURES, name)
    desk.write('resources.memory = "8GiB"\n' + asked.text)
    row = Trial(desk, feature, asked).run() if "debian" in feature.sources else refused(desk, name)
    if keeps:
        record(row)
    if "debian" not in feature.sources:
        assert "E501" in row.why
    elif asked.absent:
        assert (row.locks, row.builds) == (True, True), row.why
    else:
        assert row.green, row.why
        assert row.probes
        assert all(row.compressed.values())


def refused(desk: Desk, name: str) -> Row:
    """The row of a feature that the manifest's package source does not have."""
    ran = desk("config", "validate", str(desk.manifest))
    assert ran.code == 1, ran.out
    said = next((line for line in ran.out.splitlines() if "E501" in line), ran.out)
    return Row(name, why=said.partition(": ")[2])

"""Every feature locks, builds, boots in a real container, and its probes pass there."""

from __future__ import annotations

import pytest
from cli_box import CliBox
from manifests import Wanted, wanted
from record import inputs_of, kept, record
from trial import Row, Trial

from agentbox.manifest.features.loader import load_features
from agentbox.manifest.features.model import Feature

FEATURES = load_features()


@pytest.mark.timeout(7200)
def test_a_feature_works(
    name: str, cli_box: CliBox, keeps: bool, goes_on: bool, systems: str
) -> None:
    """Locked, built, booted, probed, its commands found by agents. A feature of another package
    source is refused before anything is locked; one whose devices this machine lacks starts without
    them, and all its other probes pass."""
    feature, asked = FEATURES[name], wanted(FEATURES, name)
    inputs = inputs_of(asked.on)
    earlier = kept(name, inputs) if goes_on else None
    if earlier and not faults(feature, asked, earlier):
        return
    cli_box.write('resources.memory = "8GiB"\n' + systems + asked.text)
    row = (
        Trial(cli_box, feature, asked).run()
        if "debian" in feature.sources
        else refused(cli_box, name)
    )
    if keeps:
        record(row, inputs)
    assert not faults(feature, asked, row)


def faults(feature: Feature, asked: Wanted, row: Row) -> list[str]:
    """What is wrong with a row, in words."""
    if "debian" not in feature.sources:
        return [] if "E501" in row.why else [f"not refused: {row}"]
    wrong = [] if row.boots else [row.why or "it did not boot"]
    at_boot = [probe["passed"] for probe in row.probes if probe["stage"] == "boot"]
    if not row.green and not (feature.name in asked.deprived and any(at_boot) and all(at_boot)):
        wrong.append(row.why or "not green")
    wrong += [] if row.probes else ["no probe ran"]
    wrong += [f"layer {layer} is empty" for layer, size in row.compressed.items() if not size]
    return wrong + [
        f"agents have no command {command}" for command, found in row.commands.items() if not found
    ]


def refused(cli_box: CliBox, name: str) -> Row:
    """The row of a feature that the manifest's package source does not have."""
    ran = cli_box("config", "validate", str(cli_box.manifest))
    assert ran.code == 1, ran.out
    said = next((line for line in ran.out.splitlines() if "E501" in line), ran.out)
    return Row(name, why=said.partition(": ")[2])

"""The manifests that are shown to people are valid."""

import pytest
from catalogue import FEATURES

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import load
from agentbox.manifest.rules.engine import run_rules

FEDERATED = CHECKOUT / "tests/golden/federated-client/agentbox.toml"


def test_the_shipped_manifest() -> None:
    """No finding of any severity."""
    assert run_rules(load(CHECKOUT / "agentbox.toml"), features=load_features()).findings == ()


@pytest.mark.parametrize("features", [FEATURES, load_features()], ids=["catalogue", "shipped"])
def test_the_federated_client(features) -> None:  # type: ignore[no-untyped-def]
    """Nothing but what this release does not serve yet."""
    report = run_rules(load(FEDERATED), features=features, environment=None)
    assert {found.code for found in report.findings} <= {"E606"}
    assert report.not_evaluated == ()

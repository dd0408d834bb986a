"""The digest of the lock's inputs, and why a lock no longer matches."""

from dataclasses import replace

import pytest

from agentbox.plan.lockfile.inputs import LockInputs, RequestedPackages
from agentbox.plan.lockfile.model import Lock

INPUTS = LockInputs(
    source="debian",
    suite="trixie",
    python="3.13",
    systems=("x86_64-linux",),
    features={"core": RequestedPackages(debian=("git", "curl")), "build": RequestedPackages()},
    requirements=("click>=8",),
)
LOCK = Lock(
    inputs=INPUTS.digest(),
    source="debian",
    suite="trixie",
    python="3.13",
    systems=("x86_64-linux",),
    features=("build", "core"),
)


def test_order_makes_no_difference() -> None:
    """The same packages in another order are the same inputs."""
    turned = replace(
        INPUTS,
        features={"build": RequestedPackages(), "core": RequestedPackages(debian=("curl", "git"))},
    )
    assert turned.digest() == INPUTS.digest()
    assert turned.difference(LOCK) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"suite": "bookworm"}, "suite bookworm instead of trixie"),
        ({"systems": ("aarch64-linux", "x86_64-linux")}, "system aarch64-linux was added"),
        (
            {"features": {**INPUTS.features, "codex": RequestedPackages()}},
            "feature codex was added",
        ),
        ({"features": {"core": INPUTS.features["core"]}}, "feature build was removed"),
        (
            {"features": {**INPUTS.features, "core": RequestedPackages(debian=("git",))}},
            "package lists changed",
        ),
        ({"extra_packages": ("vim",)}, "package lists changed"),
        ({"requirements": ("click>=9",)}, "package lists changed"),
    ],
)
def test_what_changed_is_named(change: dict[str, object], why: str) -> None:
    """Whatever decides the packages changes the digest, and the difference is described in words."""
    changed = replace(INPUTS, **change)  # type: ignore[arg-type]
    assert changed.digest() != INPUTS.digest()
    assert changed.difference(LOCK) == why

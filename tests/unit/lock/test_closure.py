"""Wheels are chosen for the target, not for the resolving Python."""

import pytest
from packaging.requirements import Requirement

from agentbox.host.packages.python.closure import UnmetRequirements, reachable, without_marker
from agentbox.host.packages.python.pip_report import ResolvedWheel
from agentbox.host.packages.python.target import Target

TRIXIE = Target("3.13", "amd64", 41)


def chosen(name: str, version: str, *requires: str) -> tuple[str, ResolvedWheel]:
    return name, ResolvedWheel(
        name, version, f"{name}-{version}.whl", tuple(Requirement(text) for text in requires)
    )


FOUND = dict(
    [
        chosen(
            "app",
            "1.0",
            "old; python_version < '3.12'",
            "new>=2; python_version >= '3.12'",
            "extra[fast]",
        ),
        chosen("new", "2.1", "arm; platform_machine == 'aarch64'"),
        chosen("extra", "1", "speed; extra == 'fast'", "slow; extra == 'slow'"),
        chosen("speed", "3"),
        chosen("old", "1"),
    ]
)


def test_markers_of_the_target_decide() -> None:
    """Requirements of other Pythons or machines are dropped; requested extras are followed."""
    assert reachable(FOUND, [Requirement("app")], TRIXIE) == {"app", "new", "extra", "speed"}


def test_what_is_missing_is_named() -> None:
    """A requirement of the target that is missing or has a wrong version is requested again,
    without marker.
    """
    with pytest.raises(UnmetRequirements) as caught:
        reachable(FOUND, [Requirement("app")], Target("3.13", "arm64", 41))
    assert caught.value.requirements == ["arm"]
    with pytest.raises(UnmetRequirements) as caught:
        reachable(FOUND, [Requirement("new<2")], TRIXIE)
    assert caught.value.requirements == ["new<2"]


def test_roots_of_other_targets_do_not_count() -> None:
    """A requirement whose marker is false for the target is ignored."""
    assert reachable(FOUND, [Requirement("absent; python_version < '3'")], TRIXIE) == frozenset()


def test_plain_requirements() -> None:
    """Extras and versions are kept, the marker is removed."""
    assert without_marker(Requirement("a[y,x]>=1,<2; python_version < '4'")) == "a[x,y]<2,>=1"


def test_tags_go_up_to_the_c_library() -> None:
    """Every manylinux tag up to the suite's glibc; arm64 begins at its first tag."""
    assert TRIXIE.platforms[0] == "manylinux_2_41_x86_64"
    assert "manylinux_2_5_x86_64" in TRIXIE.platforms
    assert "manylinux2014_x86_64" in TRIXIE.platforms
    arm = Target("3.13", "arm64", 36).platforms
    assert (arm[0], "manylinux_2_5_aarch64" in arm) == ("manylinux_2_36_aarch64", False)
    assert "--python-version 3.13" in " ".join(TRIXIE.pip_flags)

"""What no exception may undo."""

import pytest
from support.plans import plan_of

from agentbox.manifest.tables.security import TmpfsTable, VolumeTable
from agentbox.manifest.types import Size
from agentbox.policy.protected_paths import (
    TMPFS_TARGETS,
    VOLUME_TARGETS,
    baseline_violations,
    hides_image,
)


@pytest.mark.parametrize(
    "target",
    ["/", "/etc", "/etc/x", "/opt", "/opt/agentbox/venv", "/run/secrets", "/var/lib", "/dev"],
)
def test_a_place_of_the_image_stays_in_sight(target: str) -> None:
    """At it, below it, and its parent directories."""
    assert hides_image(target)


@pytest.mark.parametrize(
    "target",
    ["/etcetera", "/opt/other", "/run", "/run/user/1000", "/dev/shm", "/var/lib/agentbox/x"],
)
def test_other_places_may_be_mounted(target: str) -> None:
    """Names that only look alike, and the paths that features use."""
    assert not hides_image(target)


@pytest.mark.parametrize(
    "source",
    [
        "/",
        "/etc/ssl",
        "/root",
        "/dev",
        "/run/docker.sock",
        "/home/a",
        "/home/a/.ssh",
        "/srv/podman/podman.sock",
    ],
)
def test_sensitive_folders_of_the_host_are_named(source: str) -> None:
    """System directories, homes and their keys, engine sockets."""
    assert list(baseline_violations(volumes=[VolumeTable(source=source, target="/a")])) == [
        ("volumes", f"mounts {source} of the host")
    ]


def test_what_only_adds_is_not_named() -> None:
    """A directory of data, a named volume, a memory file system, one capability."""
    rows = [
        VolumeTable(source="/srv/models", target="/models"),
        VolumeTable(source="etc", target="/a"),
    ]
    mount = TmpfsTable(target="/a", size=Size("1MiB"), mode="1777")
    assert list(baseline_violations(cap_add=["NET_RAW"], tmpfs=[mount], volumes=rows)) == []


def test_what_the_baseline_mounts_is_what_the_plan_mounts() -> None:
    """The paths are listed once more here, since this module knows no plan: they are the same."""
    plan = plan_of()
    assert {row.target for row in plan.tmpfs} == set(TMPFS_TARGETS)
    assert {row.target for row in plan.volumes} == set(VOLUME_TARGETS)


@pytest.mark.parametrize("target", [*TMPFS_TARGETS, *VOLUME_TARGETS])
def test_the_baselines_mounts_keep_their_kind(target: str) -> None:
    """Memory may be requested again (it grows), but runs no programs; nothing replaces a volume."""
    grown, runs = (
        TmpfsTable(target=target, size=Size("1GiB"), exec=exec_) for exec_ in (False, True)
    )
    assert bool(list(baseline_violations(tmpfs=[grown]))) == (target in VOLUME_TARGETS)
    assert [field for field, _ in baseline_violations(tmpfs=[runs])] == ["tmpfs"]
    assert [
        field for field, _ in baseline_violations(volumes=[VolumeTable(source="x", target=target)])
    ] == ["volumes"]


def test_every_capability_and_setid_bits_are_named() -> None:
    """One pair a cause."""
    mount = TmpfsTable(target="/a", size=Size("1MiB"), mode="6755")
    assert [field for field, _ in baseline_violations(cap_add=["ALL"], tmpfs=[mount])] == [
        "cap_add",
        "tmpfs",
    ]

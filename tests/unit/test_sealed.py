"""What no exception may undo."""

import pytest

from agentbox.manifest.tables.security import Tmpfs, Volume
from agentbox.manifest.types import Size
from agentbox.policy.protected_paths import MEMORY, VOLUMES, hides, undone
from agentbox.testing.plans import plan_of


@pytest.mark.parametrize(
    "target", ["/", "/etc", "/etc/x", "/opt", "/opt/agentbox/venv", "/run/secrets", "/var/lib", "/dev"]
)
def test_a_place_of_the_image_stays_in_sight(target: str) -> None:
    """At it, below it, and the folders that hold it."""
    assert hides(target)


@pytest.mark.parametrize(
    "target", ["/etcetera", "/opt/other", "/run", "/run/user/1000", "/dev/shm", "/var/lib/agentbox/x"]
)
def test_other_places_may_be_mounted(target: str) -> None:
    """Names that only look alike, and the places that features use."""
    assert not hides(target)


@pytest.mark.parametrize(
    "source",
    ["/", "/etc/ssl", "/root", "/dev", "/run/docker.sock", "/home/a", "/home/a/.ssh", "/srv/podman/podman.sock"],
)
def test_sensitive_folders_of_the_host_are_named(source: str) -> None:
    """System folders, homes and their keys, engine sockets."""
    assert list(undone(volumes=[Volume(source=source, target="/a")])) == [
        ("volumes", f"gives the box {source} of the host")
    ]


def test_what_only_adds_is_not_named() -> None:
    """A folder of data, a named volume, a memory file system, one capability."""
    rows = [Volume(source="/srv/models", target="/models"), Volume(source="etc", target="/a")]
    mount = Tmpfs(target="/a", size=Size("1MiB"), mode="1777")
    assert list(undone(cap_add=["NET_RAW"], tmpfs=[mount], volumes=rows)) == []


def test_what_the_baseline_mounts_is_what_the_plan_mounts() -> None:
    """The places are named once more here, since this module knows no plan: they are the same."""
    plan = plan_of()
    assert {row.target for row in plan.tmpfs} == set(MEMORY)
    assert {row.target for row in plan.volumes} == set(VOLUMES)


@pytest.mark.parametrize("target", [*MEMORY, *VOLUMES])
def test_the_baselines_mounts_keep_their_kind(target: str) -> None:
    """Memory may be asked for again (it grows), but runs no programs; nothing takes the place of a volume."""
    grown, runs = (Tmpfs(target=target, size=Size("1GiB"), exec=exec_) for exec_ in (False, True))
    assert bool(list(undone(tmpfs=[grown]))) == (target in VOLUMES)
    assert [field for field, _ in undone(tmpfs=[runs])] == ["tmpfs"]
    assert [field for field, _ in undone(volumes=[Volume(source="x", target=target)])] == ["volumes"]


def test_every_capability_and_setid_bits_are_named() -> None:
    """One pair a cause."""
    mount = Tmpfs(target="/a", size=Size("1MiB"), mode="6755")
    assert [field for field, _ in undone(cap_add=["ALL"], tmpfs=[mount])] == ["cap_add", "tmpfs"]

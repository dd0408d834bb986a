"""What no exception may undo."""

import pytest

from agentbox.manifest import Size
from agentbox.manifest.sections.security import Tmpfs, Volume
from agentbox.sealed import hides, undone


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


def test_every_capability_and_setid_bits_are_named() -> None:
    """One pair a cause."""
    mount = Tmpfs(target="/a", size=Size("1MiB"), mode="6755")
    assert [field for field, _ in undone(cap_add=["ALL"], tmpfs=[mount])] == ["cap_add", "tmpfs"]

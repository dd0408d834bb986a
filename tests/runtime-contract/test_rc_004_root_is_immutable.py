"""RC-004: the root cannot be written; an application root that can is an event, and fatal in strict mode.

Column D.
"""

from collections.abc import Callable, Iterator

import pytest
from harness.container import DockerBox, docker
from harness.images import Images
from harness.pool import Pool

PLACES = ("/", "/etc", "/opt", "/opt/agentbox", "/usr", "/usr/bin")
WRITE = """
import errno, sys
for place in sys.argv[1:]:
    try:
        open(place.rstrip("/") + "/rc-004", "w").close()
    except OSError as error:
        print(place, errno.errorcode[error.errno])
    else:
        print(place, "written")
"""
WRITABLE = {"read_only": False}
APP_VOLUME = "agentbox-rc-app"


def root_is_immutable(box: DockerBox) -> None:
    """The predicate: creating a file as uid 1000 fails with EROFS outside the writable roots, and
    works in one."""
    ran = box.python(WRITE, *PLACES, "/workspace")
    told = dict(line.split() for line in ran.out.splitlines())
    assert told["/workspace"] == "written"
    assert {place: told[place] for place in PLACES} == dict.fromkeys(PLACES, "EROFS")


def writable_root_is_told(box: DockerBox) -> None:
    """The predicate: a box whose application directory is writable reports it, and still starts."""
    box.start()
    box.wait_ready()
    assert box.python(WRITE, "/opt/agentbox").out.split() == ["/opt/agentbox", "written"]
    assert box.event("ImmutableRootWritable")["path"] == "/opt/agentbox"


def root_drift_is_told(box: DockerBox) -> None:
    """The predicate, for a container whose root is not mounted read-only: an event and `/health`
    name it."""
    box.start()
    box.wait_ready()
    assert (box.event("PostureDrift")["control"], box.event("PostureDrift")["found"]) == (
        "root",
        "writable",
    )
    assert box.get("/health").json["posture"]["drift"] == ["root: writable (expected read-only)"]


def test_rc_004_writes_fail(running_docker: DockerBox) -> None:
    """EROFS in `/`, `/opt`, `/etc`, `/usr`; a file can be created in the workspace."""
    root_is_immutable(running_docker)


@pytest.fixture
def writable_app(images: Images, pool: Pool) -> Iterator[dict[str, object]]:
    """Options of a box whose `/opt/agentbox` is a copy that uid 1000 owns: the engine fills a new volume from the image."""
    docker("volume", "create", APP_VOLUME)
    mount = f"{APP_VOLUME}:/opt/agentbox"
    chown = ("--entrypoint", "/usr/bin/chown", images.plain.image_id, "1000:1000", "/opt/agentbox")
    docker("run", "--rm", "--user", "0:0", "--network", "none", "--volume", mount, *chown)
    yield {"service": {"volumes": [mount]}, "volumes": {APP_VOLUME: {"external": True}}}
    pool.clear()
    docker("volume", "rm", "--force", APP_VOLUME)


def test_rc_004_writable_root_is_told(
    docker_box: Callable[..., DockerBox], writable_app: dict[str, object]
) -> None:
    """`ImmutableRootWritable` with the path."""
    writable_root_is_told(docker_box(**writable_app))


@pytest.mark.sampled(4, family="variants of a box")
def test_rc_004_strict_refuses(
    docker_box: Callable[..., DockerBox], writable_app: dict[str, object]
) -> None:
    """In strict mode the same box ends with exit code 1, reports why, and seals nothing."""
    box = docker_box(strict=True, **writable_app)
    box.start()
    assert box.wait_exit(10) == 1
    assert "/opt/agentbox is writable" in box.event("BootstrapFailed")["reason"]
    assert not box.sealed()


def test_rc_004_root_without_read_only_is_drift(docker_box: Callable[..., DockerBox]) -> None:
    """A container whose root is not mounted read-only is reported."""
    root_drift_is_told(docker_box(service=WRITABLE))


@pytest.mark.sampled(4, family="variants of a box")
def test_rc_004_strict_refuses_that_drift(docker_box: Callable[..., DockerBox]) -> None:
    """Exit 1, the control in the reason, nothing sealed."""
    strict = docker_box(strict=True, service=WRITABLE)
    strict.start()
    assert strict.wait_exit(10) == 1
    assert "root is writable" in strict.event("BootstrapFailed")["reason"]
    assert not strict.sealed()

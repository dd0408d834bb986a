"""RC-004: the root cannot be written; an application root that can is an event, and fatal in strict mode."""

from collections.abc import Callable

import pytest
from harness.container import DockerBox


@pytest.mark.parametrize("place", ["/opt/agentbox", "/etc", "/usr", "/usr/bin", "/"])
def test_rc_004_writes_fail(docker_box: Callable[..., DockerBox], place: str) -> None:
    """Creating a file as uid 1000 gives EROFS; in /workspace it works."""
    box = docker_box()
    box.start()
    box.wait_ready()
    code = "import errno, sys\ntry:\n    open(sys.argv[1], 'w')\nexcept OSError as e:\n    print(errno.errorcode[e.errno])\nelse:\n    print('written')"
    ran = box.run(["python3", "-c", code, f"{place.rstrip('/')}/probe"])
    assert ran.out.strip() == "EROFS"
    assert box.run(["python3", "-c", code, "/workspace/probe"]).out.strip() == "written"


def writable_app() -> dict[str, object]:
    """A tmpfs of ours laid over the place that the boot probes."""
    return {"tmpfs": ["/opt/agentbox/skills:mode=755,uid=1000,gid=1000,size=1M"]}


def test_rc_004_writable_root_is_reported(docker_box: Callable[..., DockerBox]) -> None:
    """A box whose root is writable says so in an event and in `/health`."""
    box = docker_box(override={"read_only": False, "user": "1000:1000"})
    box.start()
    box.wait_ready()
    drift = [event for event in box.events() if event["event"] in {"PostureDrift", "ImmutableRootWritable"}]
    assert drift, "nothing said that the root is writable"
    assert box.get("/health").json["posture"]["drift"]


def test_rc_004_strict_refuses(docker_box: Callable[..., DockerBox]) -> None:
    """In strict mode the same box ends with exit code 1 and seals nothing."""
    box = docker_box(strict=True, override={"read_only": False})
    box.start()
    assert box.wait_exit(10) == 1
    assert not any(event["event"] == "BootstrapCompleted" for event in box.events())

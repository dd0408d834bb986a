"""RC-002: two first boots of one image have the same plan digest and write the same paths with the
same modes. Columns D and H. Excluded by name: ids, keys and times (see `VARIES`)."""

import re
from collections.abc import Callable

from harness.box import SENTINEL, Box
from harness.container import DockerBox, docker
from harness.waiting import wait_for

ROOTS = ("/run/agentbox", "/tmp", "/var/lib/agentbox", "/var/log", "/workspace")
NEEDED = {SENTINEL, "/var/lib/agentbox/secrets/mgmt-key", "/workspace/README.agentbox.md"}
# Named by the boot's id or by a date, or present only while something happens.
VARIES = re.compile(
    r"/boot/(records/)?[0-9a-f-]{36}\.json|/events/\d{4}-\d\d-\d\d\.\d{4}\.|-(wal|shm|journal)$|/\.[^/]*$|/wakeups?$"
)


def written(box: Box) -> set[str]:
    """Type, mode and path of everything below the writable roots."""
    found = set()
    for root in ROOTS:
        ran = box.run(["find", root, "-printf", "%y %m /%P\\n"])
        assert ran.code == 0, ran.err
        lines = (line.split(" ", 2) for line in ran.out.splitlines())
        found |= {f"{kind} {mode} {root}{path}" for kind, mode, path in lines}
    return {line for line in found if not VARIES.search(line)}


def settled(box: Box) -> set[str]:
    """What is written once the journal has the seal, which is the last step of a boot."""
    wait_for(
        lambda: any(event["type"] == "boot.sealed" for event in box.journal()),
        10,
        "the seal in the journal",
    )
    return written(box)


def test_rc_002(make_box: Callable[..., Box]) -> None:
    """Same plan, same paths, same modes; and something of each root is among them."""
    seen = []
    for _ in range(2):
        box = make_box()
        box.start()
        seen.append((box.wait_ready()["plan_digest"], settled(box)))
    assert {line.split()[2] for line in seen[0][1]} >= NEEDED
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] ^ seen[1][1] == set()


def test_rc_002_nothing_else_is_written(running_docker: DockerBox) -> None:
    """A boot changes nothing in the container's own layer: what differs from the image are places of mounts."""
    mounts = {mount["Destination"] for mount in running_docker.inspect()["Mounts"]}
    changed = {
        line.split(" ", 1)[1]
        for line in docker("diff", running_docker.inspect()["Id"]).splitlines()
    }
    above = {str(parent) for mount in mounts for parent in _parents(mount)}
    assert mounts
    assert changed <= mounts | above, changed - mounts - above


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]

"""RC-002: two first boots of one image give the same plan digest and write the same paths with the same modes."""

import re
from collections.abc import Callable

from harness.box import Box

LISTING = ["find", "/run/agentbox", "/var/lib/agentbox", "/workspace", "-printf", "%y %m %p\\n"]
# Named by an id of this boot, or existing only while something happens.
EXCEPT = re.compile(r"/boot/[0-9a-f-]{36}\.json|/\d{4}-\d\d-\d\d\.\d{4}\.|\.(db-wal|db-shm)$|/ready\.d/\.|\.sock$|/\.[^/]+\.\d+$")


def written(box: Box) -> set[str]:
    """Type, mode and path of everything below the writable roots, ids and times left out by name."""
    ran = box.run(LISTING)
    assert ran.code == 0, ran.err
    return {line for line in ran.out.splitlines() if not EXCEPT.search(line)}


def test_rc_002(make_box: Callable[..., Box]) -> None:
    """Same plan, same paths, same modes; a third path would show as a difference."""
    seen = []
    for _ in range(2):
        box = make_box()
        box.start()
        seen.append((box.wait_ready()["plan_digest"], written(box)))
        box.remove()
    assert len(seen[0][1]) > 10
    assert seen[0] == seen[1]

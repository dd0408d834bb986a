"""RC-009: a killed program, a full or read-only volume, a stopped backend and a sandbox that fails
un-ready the box within 7 s, each with its exact text; once fixed, the box is ready again, in the
same boot. Columns D and H. A box with test hooks can request a weaker sandbox for the canaries, and
runs one at once."""

import re
from collections.abc import Callable

import pytest
from harness.box import Box
from harness.container import DockerBox
from harness.faults import remount
from harness.process import ProcessBox
from harness.waiting import wait_for

from agentbox.agents.canaries import WEAK_HOOK
from agentbox.sandbox.canary.canary import RULES

SECONDS = 7
FILL = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as stream:
    try:
        while stream.write(bytes(1 << 16)):
            pass
    except OSError as error:
        print(os.strerror(error.errno))
"""
FULL, NO_WORKSPACE = "/workspace/fills-it", "path not accessible: /workspace"


@pytest.fixture(scope="module")
def box(make_shared_box: Callable[..., Box]) -> Box:
    """A ready box with test hooks whose workspace is a small file system."""
    made = make_shared_box(small_workspace=True, test_hooks=True)
    made.start()
    made.wait_ready()
    return made


def falls_for_a_killed_program(
    box: Box, seconds: float = SECONDS, program: str = "agent-host"
) -> None:
    """The predicate: SIGKILL to a required program, which supervisord restarts."""
    before = box.wait_ready()
    box.kill_program(program)
    words = re.compile(rf"program:{program} not running \(state=(EXITED|BACKOFF|STARTING)\)")

    def named() -> list[str]:
        return [entry for entry in box.verdict().get("missing", []) if words.fullmatch(entry)]

    wait_for(named, seconds, f"{program} in missing")
    rises(box, before)


def falls_for_a_full_volume(box: Box, seconds: float = SECONDS) -> None:
    """The predicate: not one more byte fits into the workspace."""
    before = box.wait_ready()
    assert box.python(FILL, FULL).out.strip() == "No space left on device"
    assert box.wait_missing(NO_WORKSPACE, seconds)["missing"] == [NO_WORKSPACE]
    assert box.run(["rm", FULL]).code == 0
    rises(box, before)


def falls_for_a_stopped_backend(box: Box, seconds: float = SECONDS) -> None:
    """The predicate: the program behind the required slot is stopped; program and slot are named, in that order."""
    before = box.wait_ready()
    box.supervisor("client.stop(sys.argv[1], wait=True)", "agent-host")
    program, slot = (
        "program:agent-host not running (state=STOPPED)",
        "adapter:orchestrator not healthy (status=down)",
    )
    assert box.wait_missing(slot, seconds)["missing"] == [program, slot]
    assert box.get("/health").json["adapters"]["orchestrator"]["state"] == "down"
    box.supervisor("client.start(sys.argv[1])", "agent-host")
    rises(box, before)


def falls_for_a_broken_canary(box: Box, seconds: float = SECONDS) -> None:
    """The predicate: the canary's sandbox grants a directory of the control plane's, first to read,
    then to write. Where an agent may write it may change modes too."""
    before = box.wait_ready()
    for weaker, fail in {"read": ("read",), "write": ("attribute", "write")}.items():
        assert (
            box.run(["sh", "-c", f'echo -n {weaker} > "$0"', f"/run/agentbox/{WEAK_HOOK}"]).code
            == 0
        )
        words = [f"sandbox:{rule} not enforced" for rule in fail]
        assert box.wait_missing(words[-1], seconds)["missing"] == words
    assert box.run(["rm", f"/run/agentbox/{WEAK_HOOK}"]).code == 0
    rises(box, before)


def rises(box: Box, before: dict[str, object]) -> None:
    """Ready again, later than before and in the same boot."""
    after = box.wait_ready()
    assert after["boot_id"] == before["boot_id"]
    assert str(after["since"]) > str(before["since"])


def test_rc_009_program_and_backend(box: Box) -> None:
    """The gateway and agent-host are killed; then the backend of that one's slot is stopped."""
    falls_for_a_killed_program(box, program="gateway")
    falls_for_a_killed_program(box)
    falls_for_a_stopped_backend(box)
    told = [event for event in box.events() if event["event"] == "ReadinessChanged"]
    assert [event["to"] for event in told][-4:] == ["unready", "ready", "unready", "ready"]


def test_rc_009_volume(box: Box) -> None:
    """The workspace is filled; then its mount turns read-only."""
    falls_for_a_full_volume(box)
    before = box.wait_ready()
    pid, target = _seen_from_here(box)
    remount(pid, target, "ro")
    box.wait_missing(NO_WORKSPACE, SECONDS)
    remount(pid, target, "rw")
    rises(box, before)


def _proofs(box: Box) -> list[tuple[str, int | list[str]]]:
    """What the journal has of the canary: type, and the rules that failed or the number that
    passed."""
    return [
        (event["type"], event["data"]["rules"])
        for event in box.journal()
        if event["type"].startswith("sandbox.")
    ]


def test_rc_009_sandbox(box: Box) -> None:
    """A canary that finds a hole, and then another; the journal has both, and that it passes again."""
    proof = box.wait_ready()["evidence"]["sandbox"]
    assert proof["passed"] == proof["rules"] == len(RULES)
    before = len(_proofs(box))
    falls_for_a_broken_canary(box)
    wait_for(lambda: len(_proofs(box)) >= before + 3, SECONDS, "the journal has all three")
    told = _proofs(box)[before:]
    assert told[:2] == [("sandbox.failed", ["read"]), ("sandbox.failed", ["write", "attribute"])]
    assert told[2:] == [("sandbox.proven", len(RULES))]


def _seen_from_here(box: Box) -> tuple[int, str]:
    """A process of the box by its pid on this host, and where that process finds the workspace."""
    if isinstance(box, DockerBox):
        return box.inspect()["State"]["Pid"], "/workspace"
    assert isinstance(box, ProcessBox)
    return box.first_pid(), str(box.paths.workspace)

"""RC-010: a degradable slot that is down is listed; a required one makes `/ready` 503; no orchestrator, no box."""

from collections.abc import Callable

from harness.box import MANIFEST, Box
from harness.waiting import wait_for

REQUIRED = MANIFEST.replace('pods = { use = "off" }', 'pods = { use = "off" }, beads = { required = true }')


def test_rc_010_degradable(make_box: Callable[..., Box]) -> None:
    """beads failing to open: `/ready` 200 with beads in `degraded`, `/health` says down."""
    box = make_box(hooks={"AGENTBOX_TEST_FAIL_SLOT": "beads"})
    box.start()
    body = box.wait_ready()
    assert body["degraded"] == ["beads"]
    assert box.get("/health").json["adapters"]["beads"]["state"] == "down"
    assert box.get("/health").json["status"] == "degraded"


def test_rc_010_required(make_box: Callable[..., Box]) -> None:
    """The same slot written as required: 503 with the exact string."""
    box = make_box(manifest=REQUIRED, hooks={"AGENTBOX_TEST_FAIL_SLOT": "beads"})
    box.start()
    body = box.wait_missing("adapter:beads not healthy (status=down)", 20)
    assert "adapter:beads not healthy (status=down)" in body["missing"]


def test_rc_010_orchestrator_is_fatal(make_box: Callable[..., Box]) -> None:
    """The orchestrator failing at boot: the API ends, nothing is sealed, and the log names the slot."""
    box = make_box(hooks={"AGENTBOX_TEST_FAIL_SLOT": "orchestrator"})
    box.start()
    wait_for(lambda: [line for line in box.log_lines() if "orchestrator" in line and "cannot" in line], 20, "a sentence naming the slot")
    assert not any(event["event"] == "BootstrapCompleted" for event in box.events())
    answer = box.try_get("/ready")
    assert answer is None or answer.status == 503

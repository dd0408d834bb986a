"""RC-010: a degradable slot that is down is listed; a required one makes `/ready` 503; no orchestrator, no box.

Columns D and H.
"""

from collections.abc import Callable

from harness.box import Box
from harness.outcomes import MANIFEST, NAME
from harness.process import ProcessBox
from harness.waiting import wait_for

REQUIRED = MANIFEST.replace(
    'pods = { use = "local-fs" }', 'pods = { use = "local-fs" }, beads = { required = true }'
)


def test_rc_010_degradable(make_box: Callable[..., Box]) -> None:
    """beads failing to open: `/ready` 200 with beads in `degraded`, `/health` reports down."""
    box = make_box(hooks={"AGENTBOX_TEST_FAIL_SLOT": "beads"})
    box.start()
    body = box.wait_ready()
    assert body["degraded"] == ["beads"]
    health = box.get("/health").json
    assert (health["adapters"]["beads"]["state"], health["adapters"]["beads"]["required"]) == (
        "down",
        False,
    )
    assert (health["status"], health["degraded_count"]) == ("degraded", 1)
    assert box.call("GET", "/v1/beads").status == 503


def test_rc_010_required(make_box: Callable[..., Box]) -> None:
    """The same slot written as required: 503 with the exact string, though the boot is sealed."""
    box = make_box(manifest=REQUIRED, hooks={"AGENTBOX_TEST_FAIL_SLOT": "beads"})
    box.start()
    words = "adapter:beads not healthy (status=down)"
    box.wait_event("BootstrapCompleted", 20)
    # Alone, as soon as the first canary has been heard of.
    wait_for(
        lambda: box.verdict().get("missing") == [words],
        10,
        lambda: f"{words!r} alone; verdict {box.verdict()}",
    )
    assert box.get("/ready").json["degraded"] == []


def test_rc_010_orchestrator_is_fatal(make_box: Callable[..., Box]) -> None:
    """The orchestrator failing at boot: the API exits 1 with a message, the seal fails, there is no
    sentinel."""
    box = make_box(hooks={"AGENTBOX_TEST_FAIL_SLOT": "orchestrator"})
    box.start()
    failed = box.wait_event("BootstrapFailed", 20)
    assert failed["phase"] == "seal"
    assert "management-api" in failed["reason"]
    assert "management-api (exit status 1; not expected)" in box.text(
        "/var/log/supervisor/supervisord.log"
    )
    assert any(
        line.startswith("cannot open the required slot orchestrator: ") for line in box.log_lines()
    )
    assert box.run(["test", "-e", "/run/agentbox/bootstrap.done"]).code == 1
    assert not box.sealed()
    answer = box.try_get("/ready")
    assert answer is None or answer.status == 503


def test_rc_010_up_names_the_slot(process_box: Callable[..., ProcessBox]) -> None:
    """`up` on the same box: exit 1, the API's end is the reason, and its sentence names the slot."""
    box = process_box()
    hook = {"AGENTBOX_TEST_FAIL_SLOT": "orchestrator"}
    done = box.cli("--timeout", "60", "up", "--engine", "process", "--allow-test-hooks", env=hook)
    assert done.code == 1, done.err
    assert f"cannot start the box {NAME}: boot failed in phase seal" in done.err
    assert "cannot open the required slot orchestrator: " in done.err
    assert not box.paths.sentinel.exists()

"""RC-008: liveness, readiness and the seal are three things: each waits for its own cause and names it.

The listener answers before slots open, so a slow slot alone does not hold the seal back; a slow program does.
"""

import time
from collections.abc import Callable

from harness.box import Box
from harness.waiting import wait_for

LIVE_SECONDS = 0.1


def assert_live(box: Box) -> None:
    """`/livez` answers 200 in under 100 ms."""
    started = time.perf_counter()
    live = box.get("/livez")
    assert time.perf_counter() - started < LIVE_SECONDS
    assert live.status == 200
    assert live.json["live"] is True


def test_rc_008_slow_program(make_box: Callable[..., Box]) -> None:
    """agent-host delayed by 5 s: alive, 503 that names sentinel and program, then 200."""
    box = make_box(hooks={"AGENTBOX_TEST_DELAY_PROGRAM": "agent-host:5"})
    box.start()
    wait_for(lambda: box.try_get("/livez"), 10, "the API listens")
    assert_live(box)
    ready = box.get("/ready")
    assert ready.status == 503
    assert "bootstrap.done sentinel" in ready.json["missing"]
    assert ready.headers["retry-after"] == "1"
    assert_live(box)
    box.wait_ready(15)
    assert_live(box)
    assert box.get("/health").status == 200


def test_rc_008_slow_slot(make_box: Callable[..., Box]) -> None:
    """The required slot delayed by 5 s: alive, 503 that names the slot, then 200."""
    box = make_box(hooks={"AGENTBOX_TEST_DELAY_SLOT": "orchestrator:5"})
    box.start()
    wait_for(lambda: box.try_get("/livez"), 10, "the API listens")
    assert_live(box)
    box.wait_missing("adapter:orchestrator not healthy", 5)
    assert_live(box)
    box.wait_ready(15)

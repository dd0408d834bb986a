"""RC-008: while a slot opens slowly `/livez` answers fast and `/ready` is 503 naming the sentinel; then both are 200."""

import time
from collections.abc import Callable

from harness.box import Box
from harness.waiting import wait_for


def test_rc_008(make_box: Callable[..., Box]) -> None:
    """A slot delayed by 5 s: liveness under 100 ms meanwhile, readiness names `bootstrap.done sentinel`, then 200."""
    box = make_box(hooks={"AGENTBOX_TEST_DELAY_SLOT": "beads:5"})
    box.start()
    wait_for(lambda: box.try_get("/livez"), 10, "the API listens")
    started = time.perf_counter()
    live = box.get("/livez")
    assert time.perf_counter() - started < 0.1
    assert live.status == 200
    assert live.json["live"] is True
    ready = box.get("/ready")
    assert ready.status == 503
    assert "bootstrap.done sentinel" in ready.json["missing"]
    assert ready.headers["retry-after"] == "1"
    box.wait_ready(15)
    assert box.get("/livez").status == 200
    assert box.get("/health").status == 200

"""One boot after another on the same state volume."""

import json
from dataclasses import replace

import pytest
from support.prefix_box import PrefixBox, default_programs, make_plan

from agentbox.box.supervision.boot_timeline import boot_history, boot_timeline
from agentbox.box.supervision.current_boot import mark_clean
from agentbox.plan.model import Probe

MISSING = Probe(id="tool-x", feature="core", kind="path", type="exec", path="/opt/agentbox/x")


def test_a_killed_box_is_unclean_next_time_and_a_drained_one_clean(
    box: PrefixBox, port: int
) -> None:
    """The chain of sentinels includes both."""
    box.install(make_plan(port, default_programs(port)))
    box.start()
    first = box.wait_for_event("BootstrapCompleted")
    box.wait_until(lambda: len(boot_history(box.paths)) == 1)
    box.kill()
    box.start()
    box.wait_until(lambda: len(box.events("BootstrapCompleted")) == 2)
    second = box.events("BootstrapCompleted")[1]
    assert box.wait_for_event("PreviousBootUnclean")["previous_boot_id"] == first["boot_id"]
    previous = json.loads(box.paths.sentinel.read_bytes())["previous"]
    assert previous == {
        "boot_id": first["boot_id"],
        "sentinel_sha256": first["sentinel_sha256"],
        "shutdown": "unclean",
    }
    box.wait_until(lambda: len(boot_history(box.paths)) == 2)  # written after the event
    box.stop()
    mark_clean(box.paths, second["boot_id"])
    box.start()
    box.wait_until(lambda: len(box.events("BootstrapCompleted")) == 3)
    assert box.events("BootstrapStarted")[2]["previous_shutdown"] == "clean"
    box.wait_until(lambda: len(boot_history(box.paths)) == 3)
    assert [boot.shutdown for boot in boot_history(box.paths)] == ["unclean", "clean", None]


@pytest.mark.parametrize("damage", ["remove", "alter"])
def test_history_finds_a_boot_that_was_removed_or_altered(
    box: PrefixBox, port: int, damage: str
) -> None:
    """History finds a boot that was removed or altered."""
    from agentbox.box.supervision.sentinel import broken_links

    box.install(make_plan(port, default_programs(port)))
    for number in range(1, 4):
        box.start()
        box.wait_until(lambda wanted=number: len(box.events("BootstrapCompleted")) == wanted)
        box.wait_until(lambda wanted=number: len(boot_history(box.paths)) == wanted)
        box.kill()
    assert list(broken_links(box.paths)) == []
    middle = box.paths.boot_copy(box.events("BootstrapCompleted")[1]["boot_id"])
    middle.chmod(0o600)
    if damage == "remove":
        middle.unlink()
    else:
        middle.write_bytes(middle.read_bytes().replace(b'"uid":', b'"uid": '))
    assert len(list(broken_links(box.paths))) == 1


def test_a_boot_that_fails_in_stage_a_is_remembered_and_leaves_the_mark_alone(
    box: PrefixBox, port: int
) -> None:
    """It has opened no slot, so the boot after it is as clean as the one before it was."""
    good = make_plan(port, default_programs(port))
    box.install(replace(good, probes=(MISSING,)))
    box.start()
    assert box.wait(10) == 1
    (failed,) = boot_history(box.paths)
    assert failed.seconds is None
    timeline = boot_timeline(box.paths)
    assert timeline is not None
    assert timeline.failure is not None
    assert "tool-x" in timeline.failure.reason
    box.install(good)
    box.start()
    box.wait_for_event("BootstrapCompleted")
    assert box.events("BootstrapStarted")[1]["previous_shutdown"] == "first"

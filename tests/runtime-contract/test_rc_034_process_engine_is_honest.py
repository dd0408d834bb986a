"""RC-034: the process engine emits the same events in the same order as the container, and lists exactly what it does
not protect.

Column H.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.container import DockerBox
from harness.pool import Pool
from harness.process import ProcessBox

ABSENT = [
    "no read-only root",
    "no own PID, mount or network namespace",
    "no memory, CPU or pid limit for the whole box (each agent's still hold)",
    "no seccomp list on the control plane",
    "host files readable by the control plane",
]
# Present or not, or in one place or another, by timing: which programs are awaited, and what was slow.
BY_TIMING = {"WaitingForProgram", "BootPhaseSlow", "ReadinessChanged"}


def order(events: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Names of the boot events up to the seal, with the phase of those that have one. Stage B runs
    beside the seal's first steps, hence separately."""
    events = [event for event in events if event["event"] not in BY_TIMING]
    rows = [(event["event"], str(event.get("phase", ""))) for event in events]
    rows = rows[: rows.index(("BootstrapCompleted", "")) + 1]
    beside = [row for row in rows if row[1].startswith("B")]
    return [row for row in rows if row not in beside] + beside


def test_rc_034_a_container_lacks_nothing(running_docker: DockerBox) -> None:
    """Its `/health` lists no absent protection."""
    assert running_docker.get("/health").json["protections_absent"] == []


def test_rc_034_same_events(running_process: ProcessBox, pool: Pool) -> None:
    """Same events, same order, on both: in the boots of the boxes that tests share."""
    expected = order(pool.start_events("docker"))
    assert {"PostureChecked", "SupervisorStarting", "BootstrapCompleted"} <= {
        name for name, _ in expected
    }
    assert order(pool.start_events("process")) == expected


def test_rc_034_absent_protections_are_listed(
    process_box: Callable[..., ProcessBox], pool: Pool
) -> None:
    """`up`, `status` and `/health` name them, each time."""
    box = process_box()
    up = box.cli("--json", "up", "--engine", "process")
    assert up.code == 0, up.err
    assert json.loads(up.out)["protections_absent"] == ABSENT
    again = box.cli("up", "--engine", "process")
    assert [text for text in ABSENT if f"not protected here: {text}" not in again.out] == [], (
        again.out + again.err
    )
    status = box.cli("--json", "status")
    assert (status.code, json.loads(status.out)["protections_absent"]) == (0, ABSENT)
    assert box.get("/health").json["protections_absent"] == ABSENT
    assert box.cli("down", "--yes").code == 0

"""RC-034: the process engine emits the same events in the same order and lists exactly what it does not protect."""

from collections.abc import Callable

from harness.box import Box
from harness.container import DockerBox
from harness.process import ProcessBox

from agentbox.engine.process import Process

# Events whose presence depends on timing or on the kernel, not on the engine.
VARIABLE = {"WaitingForProgram", "BootPhaseSlow", "ProgramRestarting", "ReadinessChanged", "PostureDrift", "WritableRootReady"}


def order(box: Box) -> list[str]:
    """Names of the boot events up to the seal."""
    names = [event["event"] for event in box.events() if event["event"] not in VARIABLE]
    return names[: names.index("BootstrapCompleted") + 1]


def test_rc_034(docker_box: Callable[..., DockerBox], process_box: Callable[..., ProcessBox]) -> None:
    """Same events, same order; `/health` and the engine name the same absent protections."""
    container = docker_box()
    container.start()
    container.wait_ready()
    assert container.get("/health").json["protections_absent"] == []
    expected = order(container)
    container.remove()
    host = process_box()
    host.start()
    host.wait_ready()
    assert order(host) == expected
    absent = host.get("/health").json["protections_absent"]
    assert len(absent) == 5
    assert absent == list(Process.protections_absent)

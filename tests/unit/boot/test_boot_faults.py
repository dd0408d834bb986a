"""Boots that must not complete: each reports why, with the fix, and leaves no sentinel."""

import os
import signal
from dataclasses import replace

from support.prefix_box import (
    PYTHON,
    PrefixBox,
    box_program,
    default_programs,
    make_plan,
    once,
)

from agentbox.box.supervision.current_boot import lock_state
from agentbox.box.supervision.notify import read_note
from agentbox.plan.model import Probe, Program

MISSING = Probe(id="tool-x", feature="core", kind="path", type="exec", path="/opt/agentbox/x")


def without(programs: tuple[Program, ...], name: str) -> tuple[Program, ...]:
    return tuple(program for program in programs if program.name != name)


def test_a_missing_required_artifact_ends_the_boot_and_is_named_twice(
    box: PrefixBox, port: int
) -> None:
    """A missing required artifact ends the boot and is named twice."""
    box.install(make_plan(port, default_programs(port), probes=(MISSING,)))
    box.start()
    assert box.wait(10) == 1
    assert box.wait_for_event("MissingArtifactDetected")["capability"] == "tool-x"
    failed = box.wait_for_event("BootstrapFailed")
    assert "tool-x" in failed["reason"]
    assert failed["phase"] == "5"
    assert failed["fix"]
    assert not box.paths.sentinel.exists()


def test_a_missing_optional_artifact_is_told_and_does_no_harm(box: PrefixBox, port: int) -> None:
    """A missing optional artifact is reported and does no harm."""
    box.install(make_plan(port, default_programs(port), probes=(replace(MISSING, required=False),)))
    box.start()
    box.wait_for_event("BootstrapCompleted")
    assert box.wait_for_event("OptionalArtifactMissing")["capability"] == "tool-x"
    assert box.wait_for_event("RuntimeClosureValidated")["optional_missing"] == ["tool-x"]


def test_an_unreadable_plan_ends_phase_0(box: PrefixBox, port: int) -> None:
    """An unreadable plan ends phase 0."""
    box.install(make_plan(port, default_programs(port)))
    box.paths.plan.write_text("{")
    box.start()
    assert box.wait(10) == 1
    assert box.wait_for_event("BootstrapFailed")["phase"] == "0"


def test_a_root_that_takes_no_write_is_named_with_the_kernels_reason(
    box: PrefixBox, port: int
) -> None:
    """A root that is not writable is named with the kernel's reason."""
    box.install(
        make_plan(
            port, default_programs(port), writable_roots=("/run/agentbox", "/var/lib/agentbox/x/y")
        )
    )
    (box.paths.state / "x").write_text("a file where a folder must be")
    box.start()
    assert box.wait(10) == 1
    assert box.wait_for_event("WritableRootFailed")["path"] == "/var/lib/agentbox/x/y"
    assert box.wait_for_event("WritableRootFailed")["errno"] == "ENOTDIR"
    assert "/var/lib/agentbox/x/y" in box.wait_for_event("BootstrapFailed")["reason"]


def test_nothing_can_be_written_outside_the_prefix(box: PrefixBox, port: int) -> None:
    """Stage A confines itself, and thereby everything that it starts, though the user owns the
    parent directory."""
    script = (
        "import sys, pathlib\n"
        "try:\n    pathlib.Path(sys.argv[1]).write_text('x')\n"
        "except PermissionError:\n    pathlib.Path(sys.argv[2]).write_text('refused')\n"
    )
    box.script("escape.py", script)
    escape, told = box.root / "escaped", box.paths.workspace / "told"
    program = once("escape", 40, "", required=True)
    program = replace(program, argv=(PYTHON, "-I", "{opt}/escape.py", str(escape), str(told)))
    box.install(make_plan(port, (*default_programs(port), program)))
    box.start()
    box.wait_for_event("BootstrapCompleted")
    assert told.read_text() == "refused"
    assert not escape.exists()


def test_strict_refuses_a_hook_in_an_image_that_is_no_test_image(box: PrefixBox, port: int) -> None:
    """Strict refuses a hook in an image that is no test image."""
    box.install(make_plan(port, default_programs(port)))
    box.start({"AGENTBOX_TEST_FAIL_SLOT": "beads", "AGENTBOX_STRICT": "1"})
    assert box.wait(10) == 1
    assert box.wait_for_event("TestHookIgnored")["name"] == "AGENTBOX_TEST_FAIL_SLOT"
    assert "AGENTBOX_TEST_FAIL_SLOT" in box.wait_for_event("BootstrapFailed")["reason"]


def test_without_strict_a_hook_in_another_image_is_ignored_and_told(
    box: PrefixBox, port: int
) -> None:
    """Without strict a hook in another image is ignored and reported."""
    box.install(make_plan(port, default_programs(port)))
    box.start({"AGENTBOX_TEST_FORCE_MISSING": "core-venv"})
    box.wait_for_event("BootstrapCompleted")
    assert box.wait_for_event("TestHookIgnored")["name"] == "AGENTBOX_TEST_FORCE_MISSING"


def test_a_test_image_can_be_asked_to_miss_an_artifact(box: PrefixBox, port: int) -> None:
    """A test image can simulate a missing artifact."""
    box.install(make_plan(port, default_programs(port), test_hooks=True))
    box.start({"AGENTBOX_TEST_FORCE_MISSING": "core-venv"})
    assert box.wait(10) == 1
    assert "core-venv" in box.wait_for_event("BootstrapFailed")["reason"]


def test_a_second_box_on_the_same_volume_is_refused_with_a_sentence(
    box: PrefixBox, port: int
) -> None:
    """A second box on the same volume is refused with a sentence."""
    box.install(make_plan(port, default_programs(port)))
    descriptor = lock_state(box.paths)
    try:
        box.start()
        assert box.wait(10) == 1
    finally:
        os.close(descriptor)
    assert "another box" in box.wait_for_event("BootstrapFailed")["reason"]


def test_a_program_that_never_stays_up_waits_longer_and_is_never_given_up(
    box: PrefixBox, port: int
) -> None:
    """Each death of a program is followed by a start, each time later; a temporary failure leaves a
    box that works."""
    flaps = box.paths.workspace / "flap"
    box.script(
        "flaps.py",
        "import sys, pathlib, time\n"
        "from agentbox.core.paths import Paths\n"
        "from agentbox.box.supervision.backoff import backoff\n"
        "from agentbox.box.supervision.notify import notify\n"
        "paths = Paths.for_this_process(); backoff(paths, sys.argv[1]); notify(paths, sys.argv[1])\n"
        f"flag = pathlib.Path({str(flaps)!r})\n"
        "while not flag.exists(): time.sleep(0.01)\n",
    )
    flapping = box_program("agent-host", 30, script="flaps.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), flapping)))
    box.start()
    box.wait_for_event("BootstrapCompleted")
    flaps.touch()
    box.wait_until(lambda: len(box.events("ProgramRestarting")) == 6, 60)
    flaps.unlink()
    waits = [event["wait_seconds"] for event in box.events("ProgramRestarting")]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4]
    assert box.events("ProgramRestarting")[-1]["starts"] == 9
    pid = box.supervisor().states()["agent-host"].pid
    box.wait_until(
        lambda: (
            (note := read_note(box.paths, "agent-host")) is not None and note.is_written_by(pid)
        ),
        30,
    )
    assert box.supervisor().states()["agent-host"].state == "RUNNING"


def test_sigterm_ends_a_boot_that_has_not_handed_over(box: PrefixBox, port: int) -> None:
    """Phase 5 waits for a slow probe; PID 1 listens all the same."""
    slow = Probe(
        id="slow", feature="core", kind="exec", argv=("/usr/bin/sleep", "20"), timeout_seconds=20
    )
    box.install(make_plan(port, default_programs(port), probes=(slow,)))
    box.start()
    box.wait_until(lambda: any(event["phase"] == "4" for event in box.events("PhaseCompleted")))
    assert box.process is not None
    box.process.send_signal(signal.SIGTERM)
    assert box.wait(5) == 128 + signal.SIGTERM

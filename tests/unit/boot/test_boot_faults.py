"""Boots that must not come to an end: each says why, with the fix, and leaves no sentinel."""

import json
import os
import signal
import subprocess
from dataclasses import replace

import pytest

from agentbox.plan.model import Probe, Program, Ready
from agentbox.supervision.shutdown import lock_state, mark_clean
from agentbox.supervision.timeline import boot_history, boot_timeline
from agentbox.testing.prefix_box import PYTHON, PrefixBox, box_program, default_programs, make_plan, once

MISSING = Probe(id="tool-x", feature="core", kind="path", type="exec", path="/opt/agentbox/x")


def without(programs: tuple[Program, ...], name: str) -> tuple[Program, ...]:
    return tuple(program for program in programs if program.name != name)


def test_a_missing_required_artifact_ends_the_boot_and_is_named_twice(box: PrefixBox, port: int) -> None:
    """A missing required artifact ends the boot and is named twice."""
    box.install(make_plan(port, default_programs(port), probes=(MISSING,)))
    box.start()
    assert box.wait(10) == 1
    assert box.until_event("MissingArtifactDetected")["capability"] == "tool-x"
    failed = box.until_event("BootstrapFailed")
    assert "tool-x" in failed["reason"]
    assert failed["phase"] == "5"
    assert failed["fix"]
    assert not box.paths.sentinel.exists()


def test_a_missing_optional_artifact_is_told_and_does_no_harm(box: PrefixBox, port: int) -> None:
    """A missing optional artifact is told and does no harm."""
    box.install(make_plan(port, default_programs(port), probes=(replace(MISSING, required=False),)))
    box.start()
    box.until_event("BootstrapCompleted")
    assert box.until_event("OptionalArtifactMissing")["capability"] == "tool-x"
    assert box.until_event("RuntimeClosureValidated")["optional_missing"] == ["tool-x"]


def test_an_unreadable_plan_ends_phase_0(box: PrefixBox, port: int) -> None:
    """An unreadable plan ends phase 0."""
    box.install(make_plan(port, default_programs(port)))
    box.paths.plan.write_text("{")
    box.start()
    assert box.wait(10) == 1
    assert box.until_event("BootstrapFailed")["phase"] == "0"


def test_a_root_that_takes_no_write_is_named_with_the_kernels_reason(box: PrefixBox, port: int) -> None:
    """A root that takes no write is named with the kernel's reason."""
    box.install(make_plan(port, default_programs(port), writable_roots=("/run/agentbox", "/var/lib/agentbox/x/y")))
    (box.paths.state / "x").write_text("a file where a folder must be")
    box.start()
    assert box.wait(10) == 1
    assert box.until_event("WritableRootFailed")["path"] == "/var/lib/agentbox/x/y"
    assert box.until_event("WritableRootFailed")["errno"] == "ENOTDIR"
    assert "/var/lib/agentbox/x/y" in box.until_event("BootstrapFailed")["reason"]


def test_nothing_can_be_written_outside_the_prefix(box: PrefixBox, port: int) -> None:
    """Stage A confines itself, and with that everything that it starts, though the user owns the folder above."""
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
    box.until_event("BootstrapCompleted")
    assert told.read_text() == "refused"
    assert not escape.exists()


def test_a_dead_required_program_fails_the_seal_at_once(box: PrefixBox, port: int) -> None:
    """A dead required program fails the seal at once."""
    box.script("dies.py", "import sys; sys.exit(3)")
    dead = box_program("agent-host", 30, script="dies.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), dead)))
    box.start()
    failed = box.until_event("BootstrapFailed", 5)
    assert failed["phase"] == "seal"
    assert "agent-host" in failed["reason"]
    assert not box.paths.sentinel.exists()
    box.until(lambda: boot_timeline(box.paths))
    timeline = boot_timeline(box.paths)
    assert timeline is not None
    assert timeline.failure is not None
    assert box.process is not None
    assert box.process.poll() is None, "the box stays up for inspection"


def test_a_required_program_killed_before_the_last_is_ready_fails_the_seal(box: PrefixBox, port: int) -> None:
    """SIGKILL, and supervisord restarts it: the seal has seen the death all the same."""
    box.script("slow.py", "import time; time.sleep(60)")
    slow = box_program("agent-host", 30, script="slow.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), slow)))
    box.start()
    box.until(
        lambda: any(
            e["program"] == "management-api" and e["status"] == "READY" for e in box.events("WaitingForProgram")
        )
    )
    os.kill(box.supervisor().states()["management-api"].pid, signal.SIGKILL)
    assert "management-api" in box.until_event("BootstrapFailed", 5)["reason"]
    assert not box.paths.sentinel.exists()


def test_stage_b_that_fails_fails_the_seal(box: PrefixBox, port: int) -> None:
    """A file of a layer has another size than its record says: B6 names it."""
    box.install(make_plan(port, default_programs(port)))
    box.paths.layer_files.mkdir()
    (box.paths.share / "thing").write_text("four")
    listing = {"packages": {"p": {"count": 1, "size": 5, "files": {"/opt/agentbox/share/thing": 5}}}}
    (box.paths.layer_files / "base.json").write_text(json.dumps(listing))
    box.start()
    assert box.until_event("MissingArtifactDetected", 5)["capability"] == "/opt/agentbox/share/thing"
    box.until(lambda: any(event["phase"] == "seal" for event in box.events("BootstrapFailed")))
    assert "bootstrap" in box.events("BootstrapFailed")[-1]["reason"]
    assert not box.paths.sentinel.exists()


def test_an_empty_required_set_seals_nothing(box: PrefixBox, port: int) -> None:
    """An empty required set seals nothing."""
    programs = tuple(replace(program, required=False) for program in default_programs(port))
    box.install(make_plan(port, programs))
    box.start()
    assert "requires no program" in box.until_event("BootstrapFailed")["reason"]
    assert not box.paths.sentinel.exists()


def test_a_plan_that_vanished_seals_nothing(box: PrefixBox, port: int) -> None:
    """A plan that vanished seals nothing."""
    box.script("removes.py", f"import os, time; os.unlink({str(box.paths.plan)!r}); time.sleep(60)")
    remover = box_program("remover", 1, script="removes.py")
    box.install(make_plan(port, (remover, once("bootstrap-seal", 99, "agentbox.boot.seal", required=False))))
    box.start()
    assert "plan.json" in box.until_event("BootstrapFailed")["reason"]
    assert not box.paths.sentinel.exists()


def test_the_seal_times_out_naming_whom_it_waits_for(box: PrefixBox, port: int) -> None:
    """The seal times out naming whom it waits for."""
    box.script("slow.py", "import time; time.sleep(60)")
    slow = box_program("agent-host", 30, script="slow.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), slow), test_hooks=True))
    box.start({"AGENTBOX_TEST_SEAL_TIMEOUT": "0.5"})
    late = box.until_event("BootstrapSealTimeout", 5)
    assert late["waiting_for"] == ["agent-host"]
    assert late["timeout_seconds"] == 0.5
    assert not box.paths.sentinel.exists()


def test_a_program_that_answers_a_port_and_one_that_only_stays_up_are_ready_by_that(box: PrefixBox, port: int) -> None:
    """A program that answers a port and one that only stays up are ready by that."""
    box.script("quiet.py", f"import socket, time; s = socket.create_server(('127.0.0.1', {port + 2})); time.sleep(60)")
    box.script("stays.py", "import time; time.sleep(60)")
    tcp = box_program(
        "quiet", 50, script="quiet.py", ready=Ready(by="tcp", target=f"127.0.0.1:{port + 2}"), startsecs=1
    )
    state = box_program("stays", 51, script="stays.py", ready=Ready(by="state"), startsecs=1)
    box.install(make_plan(port, (*default_programs(port), tcp, state)))
    box.start()
    box.until_event("BootstrapCompleted")
    ready = {row["name"]: row["ready_seconds"] for row in json.loads(box.paths.sentinel.read_bytes())["programs"]}
    assert ready["stays"] > 1
    assert ready["quiet"] is not None


def test_strict_refuses_a_hook_in_an_image_that_is_no_test_image(box: PrefixBox, port: int) -> None:
    """Strict refuses a hook in an image that is no test image."""
    box.install(make_plan(port, default_programs(port)))
    box.start({"AGENTBOX_TEST_FAIL_SLOT": "beads", "AGENTBOX_STRICT": "1"})
    assert box.wait(10) == 1
    assert box.until_event("TestHookIgnored")["name"] == "AGENTBOX_TEST_FAIL_SLOT"
    assert "AGENTBOX_TEST_FAIL_SLOT" in box.until_event("BootstrapFailed")["reason"]


def test_without_strict_a_hook_in_another_image_is_ignored_and_told(box: PrefixBox, port: int) -> None:
    """Without strict a hook in another image is ignored and told."""
    box.install(make_plan(port, default_programs(port)))
    box.start({"AGENTBOX_TEST_FORCE_MISSING": "core-venv"})
    box.until_event("BootstrapCompleted")
    assert box.until_event("TestHookIgnored")["name"] == "AGENTBOX_TEST_FORCE_MISSING"


def test_a_test_image_can_be_asked_to_miss_an_artifact(box: PrefixBox, port: int) -> None:
    """A test image can be asked to miss an artifact."""
    box.install(make_plan(port, default_programs(port), test_hooks=True))
    box.start({"AGENTBOX_TEST_FORCE_MISSING": "core-venv"})
    assert box.wait(10) == 1
    assert "core-venv" in box.until_event("BootstrapFailed")["reason"]


def test_strict_stops_the_box_when_the_seal_fails(box: PrefixBox, port: int) -> None:
    """Strict stops the box when the seal fails."""
    box.script("dies.py", "import sys; sys.exit(3)")
    dead = box_program("agent-host", 30, script="dies.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), dead)))
    box.start({"AGENTBOX_STRICT": "1"})
    box.until_event("BootstrapFailed")
    assert box.wait(20) == 0


def test_a_killed_box_is_unclean_next_time_and_a_drained_one_clean(box: PrefixBox, port: int) -> None:
    """The chain of sentinels goes through both."""
    box.install(make_plan(port, default_programs(port)))
    box.start()
    first = box.until_event("BootstrapCompleted")
    box.until(lambda: len(boot_history(box.paths)) == 1)
    box.kill()
    box.start()
    box.until(lambda: len(box.events("BootstrapCompleted")) == 2)
    second = box.events("BootstrapCompleted")[1]
    assert box.until_event("PreviousBootUnclean")["previous_boot_id"] == first["boot_id"]
    previous = json.loads(box.paths.sentinel.read_bytes())["previous"]
    assert previous == {"boot_id": first["boot_id"], "sentinel_sha256": first["sentinel_sha256"], "shutdown": "unclean"}
    box.stop()
    mark_clean(box.paths, second["boot_id"])
    box.start()
    box.until(lambda: len(box.events("BootstrapCompleted")) == 3)
    assert box.events("BootstrapStarted")[2]["previous_shutdown"] == "clean"
    box.until(lambda: len(boot_history(box.paths)) == 3)
    assert [boot.shutdown for boot in boot_history(box.paths)] == ["unclean", "clean", None]


def test_a_second_box_on_the_same_volume_is_refused_with_a_sentence(box: PrefixBox, port: int) -> None:
    """A second box on the same volume is refused with a sentence."""
    box.install(make_plan(port, default_programs(port)))
    descriptor = lock_state(box.paths)
    try:
        box.start()
        assert box.wait(10) == 1
    finally:
        os.close(descriptor)
    assert "another box" in box.until_event("BootstrapFailed")["reason"]


def test_a_program_that_never_stays_up_waits_longer_and_is_stopped_in_the_end(box: PrefixBox, port: int) -> None:
    """Restarted more than 5 times in 60 s: supervisord stops it."""
    flaps = box.paths.workspace / "flap"
    box.script(
        "flaps.py",
        "import sys, pathlib, time\n"
        "from agentbox.settings import Paths\n"
        "from agentbox.supervision.backoff import backoff\n"
        "from agentbox.supervision.notify import notify\n"
        "paths = Paths.of_this_process(); backoff(paths, sys.argv[1]); notify(paths, sys.argv[1])\n"
        f"flag = pathlib.Path({str(flaps)!r})\n"
        "while not flag.exists(): time.sleep(0.01)\n",
    )
    flapping = box_program("agent-host", 30, script="flaps.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), flapping)))
    box.start()
    box.until_event("BootstrapCompleted")
    flaps.touch()
    box.until(lambda: box.supervisor().states()["agent-host"].state == "STOPPED", 60)
    waits = [event["wait_seconds"] for event in box.events("ProgramRestarting")]
    assert waits == sorted(waits)
    assert box.events("ProgramRestarting")[-1]["starts"] == 7


def test_sigterm_ends_a_boot_that_has_not_handed_over(box: PrefixBox, port: int) -> None:
    """Phase 5 waits for a slow probe; PID 1 listens all the same."""
    slow = Probe(id="slow", feature="core", kind="exec", argv=("/usr/bin/sleep", "20"), timeout_seconds=20)
    box.install(make_plan(port, default_programs(port), probes=(slow,)))
    box.start()
    box.until(lambda: any(event["phase"] == "4" for event in box.events("PhaseCompleted")))
    assert box.process is not None
    box.process.send_signal(signal.SIGTERM)
    assert box.wait(5) == 128 + signal.SIGTERM


def test_the_seal_by_itself_writes_nothing(box: PrefixBox, port: int) -> None:
    """Run by hand, when no boot was begun."""
    box.install(make_plan(port, default_programs(port)))
    env = {"AGENTBOX_PREFIX": str(box.paths.prefix)}
    ended = subprocess.run(
        [str(box.paths.python), "-I", "-m", "agentbox.boot.seal"], env=env, capture_output=True, check=False
    )
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["event"] == "BootstrapFailed"
    assert not box.paths.sentinel.exists()


@pytest.mark.parametrize("damage", ["remove", "alter"])
def test_history_finds_a_boot_that_was_removed_or_altered(box: PrefixBox, port: int, damage: str) -> None:
    """History finds a boot that was removed or altered."""
    from agentbox.supervision.sentinel import broken_links

    box.install(make_plan(port, default_programs(port)))
    for number in range(1, 4):
        box.start()
        box.until(lambda wanted=number: len(box.events("BootstrapCompleted")) == wanted)
        box.until(lambda wanted=number: len(boot_history(box.paths)) == wanted)
        box.kill()
    assert list(broken_links(box.paths)) == []
    middle = box.paths.boot_copy(box.events("BootstrapCompleted")[1]["boot_id"])
    middle.chmod(0o600)
    if damage == "remove":
        middle.unlink()
    else:
        middle.write_bytes(middle.read_bytes().replace(b'"uid":', b'"uid": '))
    assert len(list(broken_links(box.paths))) == 1

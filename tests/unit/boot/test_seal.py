"""The seal fails closed, at once, and reports why."""

import json
import os
import signal
import subprocess
from dataclasses import replace

from support.prefix_box import PrefixBox, box_program, default_programs, make_plan

from agentbox.box.supervision.boot_timeline import boot_timeline
from agentbox.plan.model import Program, ReadySignal


def without(programs: tuple[Program, ...], name: str) -> tuple[Program, ...]:
    return tuple(program for program in programs if program.name != name)


def test_a_dead_required_program_fails_the_seal_at_once(box: PrefixBox, port: int) -> None:
    """A dead required program fails the seal at once."""
    box.script("dies.py", "import sys; sys.exit(3)")
    dead = box_program("agent-host", 30, script="dies.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), dead)))
    box.start()
    failed = box.wait_for_event("BootstrapFailed")
    assert failed["phase"] == "seal"
    assert "agent-host" in failed["reason"]
    assert not box.paths.sentinel.exists()
    box.wait_until(lambda: boot_timeline(box.paths))
    timeline = boot_timeline(box.paths)
    assert timeline is not None
    assert timeline.failure is not None
    assert box.process is not None
    assert box.process.poll() is None, "the box stays up for inspection"


def test_a_required_program_killed_before_the_last_is_ready_fails_the_seal(
    box: PrefixBox, port: int
) -> None:
    """SIGKILL, and supervisord restarts it: the seal has seen the death all the same."""
    box.script("slow.py", "import time; time.sleep(60)")
    slow = box_program("agent-host", 30, script="slow.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), slow)))
    box.start()
    box.wait_until(
        lambda: any(
            e["program"] == "management-api" and e["status"] == "READY"
            for e in box.events("WaitingForProgram")
        )
    )
    os.kill(box.supervisor().states()["management-api"].pid, signal.SIGKILL)
    assert "management-api" in box.wait_for_event("BootstrapFailed")["reason"]
    assert not box.paths.sentinel.exists()


def test_stage_b_that_fails_fails_the_seal(box: PrefixBox, port: int) -> None:
    """A file of a layer has another size than recorded: B6 names it."""
    box.install(make_plan(port, default_programs(port)))
    box.paths.layer_files.mkdir()
    (box.paths.share / "thing").write_text("four")
    listing = {
        "packages": {"p": {"count": 1, "size": 5, "files": {"/opt/agentbox/share/thing": 5}}}
    }
    (box.paths.layer_files / "base.json").write_text(json.dumps(listing))
    box.start()
    assert (
        box.wait_for_event("MissingArtifactDetected")["capability"] == "/opt/agentbox/share/thing"
    )
    box.wait_until(lambda: any(event["phase"] == "seal" for event in box.events("BootstrapFailed")))
    assert "bootstrap" in box.events("BootstrapFailed")[-1]["reason"]
    assert not box.paths.sentinel.exists()


def test_an_empty_required_set_seals_nothing(box: PrefixBox, port: int) -> None:
    """An empty required set seals nothing."""
    programs = tuple(replace(program, required=False) for program in default_programs(port))
    box.install(make_plan(port, programs))
    box.start()
    assert "requires no program" in box.wait_for_event("BootstrapFailed")["reason"]
    assert not box.paths.sentinel.exists()


def test_a_plan_that_vanished_seals_nothing(box: PrefixBox, port: int) -> None:
    """A plan that vanished seals nothing."""
    seal = "runpy.run_module('agentbox.box.seal.main', run_name='__main__')"
    box.script("seals.py", f"import os, runpy; os.unlink({str(box.paths.plan)!r}); {seal}")
    late = box_program(
        "bootstrap-seal",
        99,
        script="seals.py",
        required=False,
        once=True,
        ready=ReadySignal(by="exit0"),
    )
    box.install(make_plan(port, (*without(default_programs(port), "bootstrap-seal"), late)))
    box.start()
    assert "plan.json" in box.wait_for_event("BootstrapFailed")["reason"]
    assert not box.paths.sentinel.exists()


def test_strict_stops_the_box_when_the_sentinel_cannot_be_written(
    box: PrefixBox, port: int
) -> None:
    """Everything ran, and a directory is where the sentinel is written: no seal, and with strict no
    box."""
    box.script(
        "blocks.py", f"import os, time; os.mkdir({str(box.paths.sentinel)!r}); time.sleep(60)"
    )
    blocker = box_program("agent-host", 30, script="blocks.py", ready=ReadySignal(by="state"))
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), blocker)))
    box.start({"AGENTBOX_STRICT": "1"})
    box.wait_until(lambda: any(event["phase"] == "seal" for event in box.events("BootstrapFailed")))
    assert box.wait(20) == 0


def test_the_seal_times_out_naming_whom_it_waits_for(box: PrefixBox, port: int) -> None:
    """The seal times out naming whom it waits for."""
    box.script("slow.py", "import time; time.sleep(60)")
    slow = box_program("agent-host", 30, script="slow.py")
    box.install(
        make_plan(port, (*without(default_programs(port), "agent-host"), slow), test_hooks=True)
    )
    box.start({"AGENTBOX_TEST_SEAL_TIMEOUT": "5"})  # by then the others exist on a busy machine too
    late = box.wait_for_event("BootstrapSealTimeout")
    assert late["waiting_for"] == ["agent-host"]
    assert late["timeout_seconds"] == 5
    assert not box.paths.sentinel.exists()


def test_a_program_that_answers_a_port_and_one_that_only_stays_up_are_ready_by_that(
    box: PrefixBox, port: int
) -> None:
    """Of a program that answers on a port and of one that only stays up, that alone makes it ready."""
    box.script(
        "quiet.py",
        f"import socket, time; s = socket.create_server(('127.0.0.1', {port + 2})); time.sleep(60)",
    )
    box.script("stays.py", "import time; time.sleep(60)")
    tcp = box_program(
        "quiet",
        50,
        script="quiet.py",
        ready=ReadySignal(by="tcp", target=f"127.0.0.1:{port + 2}"),
        startsecs=1,
    )
    state = box_program("stays", 51, script="stays.py", ready=ReadySignal(by="state"), startsecs=1)
    box.install(make_plan(port, (*default_programs(port), tcp, state)))
    box.start()
    box.wait_for_event("BootstrapCompleted")
    ready = {
        row["name"]: row["ready_seconds"]
        for row in json.loads(box.paths.sentinel.read_bytes())["programs"]
    }
    assert ready["stays"] > 1
    assert ready["quiet"] is not None


def test_strict_stops_the_box_when_the_seal_fails(box: PrefixBox, port: int) -> None:
    """Strict stops the box when the seal fails."""
    box.script("dies.py", "import sys; sys.exit(3)")
    dead = box_program("agent-host", 30, script="dies.py")
    box.install(make_plan(port, (*without(default_programs(port), "agent-host"), dead)))
    box.start({"AGENTBOX_STRICT": "1"})
    box.wait_for_event("BootstrapFailed")
    assert box.wait(20) == 0


def test_the_seal_by_itself_writes_nothing(box: PrefixBox, port: int) -> None:
    """Run by hand, without a boot."""
    box.install(make_plan(port, default_programs(port)))
    env = {"AGENTBOX_PREFIX": str(box.paths.prefix)}
    ended = subprocess.run(
        [str(box.paths.python), "-I", "-m", "agentbox.box.seal.main"],
        env=env,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["event"] == "BootstrapFailed"
    assert not box.paths.sentinel.exists()

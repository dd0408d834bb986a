"""RC-011: an empty required set, a missing plan, a dead program and a timeout seal nothing and end with exit 1; a seal
that is killed while it writes leaves no sentinel.

Columns D and H.
"""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from harness.box import PYTHON, SENTINEL, Box
from harness.container import DockerBox
from harness.outcomes import MANIFEST
from harness.process import ProcessBox
from harness.waiting import wait_for

from agentbox.plan.model import Plan

LIVE_KEY = MANIFEST.replace("adapters = {", "limits = { run_wall_seconds = 61 }\nadapters = {")
SEAL = [PYTHON, "-I", "-m", "agentbox.box.seal.main"]
# The seal runs as an idle task on the processor of this program, which therefore acts before the seal's next step.
KILL_AT_WRITE = """
import json, os, select, subprocess
from agentbox.core.paths import Paths
from agentbox.core.linux.inotify import CREATE, MOVED_TO, Inotify

paths = Paths.for_this_process()
processor = {min(os.sched_getaffinity(0))}

def idle():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

os.sched_setaffinity(0, processor)
with Inotify() as notes:
    notes.watch(paths.run, CREATE | MOVED_TO)
    seal = subprocess.Popen([str(paths.python), "-I", "-m", "agentbox.box.seal.main"], preexec_fn=idle, stdout=subprocess.DEVNULL)
    while select.select([notes], [], [], 10)[0]:
        if any(name.startswith(paths.sentinel.name) for name in notes.read_names()):
            break
    seal.kill()
left = [path.name for path in paths.run.iterdir() if path.name.startswith(paths.sentinel.name)]
print(json.dumps({"code": seal.wait(), "left": left}))
"""


def requires_nothing(plan: Plan) -> Plan:
    return replace(
        plan, programs=tuple(replace(program, required=False) for program in plan.programs)
    )


def seal_exit(box: Box) -> int:
    """How the program bootstrap-seal ended."""
    name = "bootstrap-seal"
    wait_for(
        lambda: box.supervisor("client.states()[sys.argv[1]].state", name) == "EXITED",
        10,
        "the seal ended",
    )
    return int(box.supervisor("client.states()[sys.argv[1]].exitstatus", name))


def no_sentinel(box: Box) -> None:
    """Neither the file nor the event exists."""
    assert box.run(["test", "-d", "/run/agentbox"]).code == 0
    assert box.run(["test", "-e", SENTINEL]).code == 1, "there is a sentinel"
    assert not box.sealed()


def empty_set_seals_nothing(box: Box) -> None:
    """The predicate, for a box whose plan requires no program."""
    box.start()
    assert seal_exit_of_first_start(box) == 1
    assert "requires no program" in box.event("BootstrapFailed")["reason"]
    no_sentinel(box)


def seal_exit_of_first_start(box: Box) -> int:
    """The same, of a box that was just started."""
    wait_for(
        lambda: box.run(["test", "-S", "/run/agentbox/supervisor.sock"]).code == 0,
        10,
        "supervisord listens",
    )
    return seal_exit(box)


def dead_program_seals_nothing(box: Box) -> None:
    """The predicate, for a box whose agent-host starts slowly: it is killed while the seal waits
    for it."""
    box.start()
    box.wait_event("BootstrapSealStarted", 10)
    box.kill_program("agent-host")
    assert seal_exit(box) == 1
    failed = box.event("BootstrapFailed")
    assert (failed["phase"], "agent-host" in failed["reason"]) == ("seal", True)
    no_sentinel(box)


def timeout_seals_nothing(box: Box) -> None:
    """The predicate, for a box whose agent-host takes 3 s and whose seal waits for 1: later there
    is no sentinel either."""
    box.start()
    late = box.wait_event("BootstrapSealTimeout", 10)
    assert "agent-host" in late["waiting_for"]
    assert seal_exit(box) == 1
    wait_for(
        lambda: box.run(["test", "-e", "/run/agentbox/ready.d/agent-host"]).code == 0,
        10,
        "agent-host is ready",
    )
    box.wait_missing("bootstrap.done sentinel", 10)
    no_sentinel(box)


def killed_while_writing_leaves_none(box: Box) -> None:
    """The predicate, of a ready box: its sentinel is removed and written anew by hand, then by a seal that is killed."""
    box.wait_ready()
    for _ in range(2):  # shows that a seal by hand does write one, repeatedly
        assert box.run(["rm", SENTINEL]).code == 0
        assert box.run(SEAL).code == 0
    assert box.run(["rm", SENTINEL]).code == 0
    ran = box.python(KILL_AT_WRITE)
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["code"] == -9, "the seal was through before it was killed"
    assert "bootstrap.done" not in told["left"], "a killed seal left a sentinel"
    assert len(told["left"]) == 1


def test_rc_011_empty_set(make_box: Callable[..., Box]) -> None:
    """No required program in the plan."""
    empty_set_seals_nothing(make_box(alter=requires_nothing))


def test_rc_011_missing_plan_docker(docker_box: Callable[..., DockerBox]) -> None:
    """plan.json is empty from the start: the box ends with exit 1 in phase 0."""
    box = docker_box(files={"/opt/agentbox/share/plan.json": b""})
    box.start()
    assert box.wait_exit(10) == 1
    assert "plan.json" in box.event("BootstrapFailed")["reason"]
    assert not box.sealed()


def test_rc_011_missing_plan_process(process_box: Callable[..., ProcessBox]) -> None:
    """plan.json is missing: the box ends with exit 1 in phase 0."""
    box = process_box()
    box.lay_out()
    box.paths.plan.unlink()
    box.boot_again()
    assert box.wait_exit(10) == 1
    assert "plan.json" in box.event("BootstrapFailed")["reason"]
    assert not box.sealed()


@pytest.fixture(scope="module")
def rendered_at_boot(make_shared_box: Callable[..., Box]) -> Box:
    """A ready box whose plan the boot rendered for a mounted manifest."""
    box = make_shared_box(mounted=LIVE_KEY)
    box.start()
    box.wait_ready()
    return box


def test_rc_011_killed_while_writing(rendered_at_boot: Box) -> None:
    """SIGKILL between the first byte and the rename; the next seal writes one."""
    killed_while_writing_leaves_none(rendered_at_boot)
    assert rendered_at_boot.run(SEAL).code == 0


def test_rc_011_plan_vanishes_before_the_seal(rendered_at_boot: Box) -> None:
    """The plan in force is missing when the seal needs it. The last test of that box."""
    box = rendered_at_boot
    assert box.run(["rm", SENTINEL]).code == 0
    assert box.run(SEAL).code == 0
    assert box.run(["rm", SENTINEL, "/run/agentbox/plan.json"]).code == 0
    assert box.run(SEAL).code == 1
    failed = json.loads(box.text("/run/agentbox/events.jsonl").splitlines()[-1])
    assert (failed["event"], "plan.json" in failed["reason"]) == ("BootstrapFailed", True)
    assert box.run(["test", "-e", SENTINEL]).code == 1


def test_rc_011_dead_program(make_box: Callable[..., Box]) -> None:
    """A required program dies before it was ready."""
    dead_program_seals_nothing(make_box(hooks={"AGENTBOX_TEST_DELAY_PROGRAM": "agent-host:30"}))


def test_rc_011_timeout(make_box: Callable[..., Box]) -> None:
    """A required program is not ready in time."""
    timeout_seals_nothing(
        make_box(
            hooks={"AGENTBOX_TEST_DELAY_PROGRAM": "agent-host:3", "AGENTBOX_TEST_SEAL_TIMEOUT": "1"}
        )
    )

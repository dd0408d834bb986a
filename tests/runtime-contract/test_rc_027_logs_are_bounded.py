"""RC-027: 200 MB of program output: `/var/log` stays below its size, what the engine keeps stays below its own bound,
and `/ready` stays 200 all the while.

Columns D and H. Under the process engine `/var/log` is a folder: its bound is that of the rotation alone, and what
programs print goes to a file that nothing bounds, so only the container's stdout is flooded.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from harness.box import Box
from harness.container import DockerBox
from harness.waiting import wait_for

from agentbox.plan.model import Plan, Program, ReadySignal
from agentbox.plan.storage import with_log_sizes

MB = 10**6
FLOOD = 200 * MB
ENGINE_KEEPS = 3 * 10 * MB
GO, LAST = "noise-go", "the end of the flood"
# In the workspace: waits for the command, prints, reports it, and stays.
NOISE = (
    "until [ -e $1 ]; do sleep 0.1; done; yes 'a line of output, neither short nor long, as programs print them' 2>&- | "
    f"head -c {FLOOD}; printf '\\n{LAST}\\n'; touch $2; exec sleep 1000000"
)


def noisy(*logs: str) -> Callable[[Plan], Plan]:
    """The plan with one more program for each kind of log."""

    def alter(plan: Plan) -> Plan:
        programs = (*plan.programs, *(_program(log) for log in logs))
        return replace(plan, programs=with_log_sizes(programs, plan.resources.log_size))

    return alter


def _program(log: str) -> Program:
    argv = ("/usr/bin/bash", "-c", NOISE, "noise", GO, f"noise-{log}-done")
    return Program(
        name=f"noise-{log}", priority=50, argv=argv, required=False, ready=ReadySignal(by="state"), startsecs=1,
        directory="/workspace", group="features", log=log,  # type: ignore[arg-type]
    )  # fmt: skip


def flood(box: Box, *logs: str) -> int:
    """Lets the programs of a ready box print, requests `/ready` until they have, and returns the
    number of requests."""
    box.start()
    box.wait_ready()
    states = "[s.state for n, s in client.states().items() if n.startswith('noise')]"
    wait_for(lambda: box.supervisor(states) == str(["RUNNING"] * len(logs)), 10, "the programs run")
    box.run(["touch", f"/workspace/{GO}"])
    asked = 0

    def printed() -> bool:
        return all(
            box.run(["test", "-e", f"/workspace/noise-{log}-done"]).code == 0 for log in logs
        )

    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(wait_for, printed, 90, "200 MB printed")
        while not waiting.done():
            answer = box.get("/ready")
            assert answer.status == 200, answer.body
            asked += 1
        waiting.result()
    return asked


def log_file_is_bounded(box: Box) -> None:
    """The file and its backup have the end of the flood and no more than their share; the directory
    is not full."""
    wait_for(
        lambda: box.run(["tail", "-n", "1", "/var/log/noise-file.log"]).out == f"{LAST}\n",
        20,
        "all was logged",
    )
    used = int(box.run(["du", "-sb", "/var/log"]).out.split()[0])
    assert MB < used < 0.6 * box.plan.resources.log_size + 2 * MB
    assert box.run(["touch", "/var/log/still-writable"]).code == 0


def test_rc_027_docker(docker_box: Callable[..., DockerBox]) -> None:
    """One program floods its log file, one the container's stdout."""
    box = docker_box(alter=noisy("file", "stdout"))
    assert flood(box, "file", "stdout") >= 5
    log_file_is_bounded(box)
    size = int(box.run(["df", "--output=size", "-B1", "/var/log"]).out.split()[1])
    assert size == box.plan.resources.log_size < FLOOD
    kept = Path(box.inspect()["LogPath"])
    sizes = [path.stat().st_size for path in kept.parent.glob(f"{kept.name}*")]
    assert 10 * MB < sum(sizes) < 1.1 * ENGINE_KEEPS
    assert box.wait_ready()["ready"] is True


def test_rc_027_process(process_box: Callable[..., Box]) -> None:
    """A program floods its log file."""
    box = process_box(alter=noisy("file"))
    assert flood(box, "file") >= 5
    log_file_is_bounded(box)
    assert box.wait_ready()["ready"] is True

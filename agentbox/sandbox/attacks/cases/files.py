"""Reads files and memory of the box and of other agents."""

import os
from typing import Final

from agentbox.sandbox.attacks.attempts import (
    create_file,
    open_and_close,
    run_attempt,
    run_each,
    worst,
)
from agentbox.sandbox.attacks.case import AttackGroup, TargetInfo, TargetMissing

SUITE = AttackGroup("files")
_PROCESS_TESTS: Final = ("tests/unit/sandbox/test_confine.py::test_strangers_cannot_be_reached",)
_CONTROL_PLANE_TESTS: Final = (
    "tests/unit/agents/test_confinement.py::test_the_control_plane_is_closed",
    "tests/unit/attack/test_battery.py::test_nothing_gets_through",
)
BLOCKED: Final = {"EACCES": "landlock"}


@SUITE.case("init-environment", "reads the environment of process 1", BLOCKED, tests=_PROCESS_TESTS)
def _init_environment(_facts: TargetInfo) -> str:
    return run_attempt(open_and_close, "/proc/1/environ")


@SUITE.case(
    "parent-environment",
    "reads environment and memory of its reaper",
    BLOCKED,
    tests=_PROCESS_TESTS,
)
def _parent_environment(_facts: TargetInfo) -> str:
    reaper_pid = _reaper()
    return worst(
        run_attempt(open_and_close, f"/proc/{reaper_pid}/{name}")
        for name in ("environ", "mem", "maps")
    )


@SUITE.case(
    "sibling-environment", "reads the environment of another agent", BLOCKED, tests=_PROCESS_TESTS
)
def _sibling_environment(facts: TargetInfo) -> str:
    return run_attempt(lambda: open_and_close(f"/proc/{facts.victim_pid}/environ"))


@SUITE.case("sibling-memory", "opens the memory of another agent", BLOCKED, tests=_PROCESS_TESTS)
def _sibling_memory(facts: TargetInfo) -> str:
    pid = facts.victim_pid
    return worst(
        [
            run_attempt(lambda: open_and_close(f"/proc/{pid}/mem")),
            run_attempt(lambda: open_and_close(f"/proc/{pid}/mem", os.O_RDWR)),
        ]
    )


@SUITE.case(
    "sibling-descriptors",
    "opens another agent's descriptors, root and working directory through /proc",
    BLOCKED,
    tests=_PROCESS_TESTS,
)
def _sibling_descriptors(facts: TargetInfo) -> str:
    directory = f"/proc/{facts.victim_pid}"
    opens = (
        run_attempt(open_and_close, f"{directory}/{name}")
        for name in ("fd/1", "root/etc/passwd", "cwd/.", "maps")
    )
    return worst([*opens, run_attempt(os.listdir, f"{directory}/map_files")])


@SUITE.case(
    "sibling-files",
    "reads, lists and writes another agent's directories",
    BLOCKED,
    tests=_CONTROL_PLANE_TESTS,
)
def _sibling_files(facts: TargetInfo) -> str:
    home = facts.neighbour.home
    if not home:
        raise TargetMissing("no victim agent")
    return worst(
        [
            run_attempt(open_and_close, f"{home}/secret"),
            run_attempt(os.listdir, home),
            run_attempt(create_file, f"{home}/planted"),
        ]
    )


@SUITE.case(
    "secrets", "reads the box's tokens, keys and secrets", BLOCKED, tests=_CONTROL_PLANE_TESTS
)
def _secrets(facts: TargetInfo) -> str:
    return run_each(open_and_close, facts.secrets)


@SUITE.case(
    "list-control-plane",
    "lists the control plane's directories",
    BLOCKED,
    tests=_CONTROL_PLANE_TESTS,
)
def _list_control_plane(facts: TargetInfo) -> str:
    return run_each(os.listdir, facts.folders)


def _reaper() -> int:
    """The pid of the reaper: the parent of the session leader."""
    leader = os.getsid(0)
    with open(f"/proc/{leader}/stat", encoding="ascii") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])

"""The isolation report: for each mechanism what holds, who holds it, and why not more. Nothing that was not measured."""

import math
from collections.abc import Mapping
from typing import Any

from agentbox.sandbox.spec import Launch

MECHANISMS = (
    *("filesystem", "network", "signals", "abstract_sockets", "pathname_sockets", "syscalls"),
    *("memory", "cpu", "processes", "descriptors", "disk"),
)
_UNCONFINED = "no ruleset of the agent's own: the box alone confines it"
_REACHABLE = "a process of the same uid can stop its keeper, because signals are not confined"

Row = dict[str, str]
Report = dict[str, Row]


def report(launch: Launch, measured: Mapping[str, Any]) -> Report:
    """`measured` is what the leader read back from the kernel right before its exec."""
    found = {name: _row("absent", "", _UNCONFINED) for name in MECHANISMS}
    found["memory"] = _memory(launch, measured)
    found["cpu"] = _cpu(launch, measured)
    found["processes"] = _bounded("reaper", bool(launch.pids), f"the tree is ended past the limit; {_REACHABLE}")
    found["descriptors"] = _descriptors(launch, measured)
    found["disk"] = _disk(launch, measured)
    return found


def _row(state: str, by: str, why: str) -> Row:
    return {"state": state, "by": by, "why": why}


def _bounded(by: str, asked: bool, why: str) -> Row:
    return _row("degraded", by, why) if asked else _row("absent", "", "no limit was asked for")


def _memory(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if launch.memory and not 0 < measured["data"] <= launch.memory:
        return _row("absent", "", "RLIMIT_DATA did not take")
    return _bounded("watchdog", bool(launch.memory), f"RLIMIT_DATA a process, a look at the tree; {_REACHABLE}")


def _cpu(launch: Launch, measured: Mapping[str, Any]) -> Row:
    whole = math.ceil(launch.cpu)
    if not launch.cpu or measured["cpus"] > whole:
        return _row("absent", "", "no limit was asked for" if not launch.cpu else "the CPU set did not take")
    return _row(
        "degraded", "kernel", f"{measured['cpus']} CPUs, nice {measured['nice']}; a process may widen its own set"
    )


def _descriptors(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.fds:
        return _row("absent", "", "no limit was asked for")
    if measured["nofile"] > launch.fds or measured["nofile"] < 0:
        return _row("absent", "", "RLIMIT_NOFILE did not take")
    if measured["uid"] == 0:
        return _row("degraded", "kernel", "RLIMIT_NOFILE, which root may raise")
    return _row("enforced", "kernel", f"RLIMIT_NOFILE {measured['nofile']} a process")


def _disk(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.file_size or not 0 < measured["fsize"] <= launch.file_size:
        return _row("absent", "", "no limit on a file")
    return _row("degraded", "kernel", "RLIMIT_FSIZE bounds each file, nothing bounds their sum")

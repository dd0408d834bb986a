"""The isolation report: for each mechanism what holds, who holds it, and why not more. Nothing that was not measured."""

import math
from collections.abc import Mapping
from typing import Any

from agentbox.policy.limits.reserve import THREADS_A_PROCESS
from agentbox.sandbox.confinement import Confinement, missing
from agentbox.sandbox.seccomp.agent_filter import REFUSED, UNKNOWN
from agentbox.sandbox.spec import Launch

MECHANISMS = (
    *("filesystem", "network", "signals", "abstract_sockets", "pathname_sockets", "syscalls"),
    *("memory", "cpu", "processes", "descriptors", "disk"),
)
_NOT_REFUSED = "a try before the start was not refused"
_NEAR = "TCP to the gateway, and to servers of its own on loopback"
_UNCONFINED = "no ruleset of the agent's own: the box alone confines it"

Row = dict[str, str]
Report = dict[str, Row]


def report(launch: Launch, measured: Mapping[str, Any]) -> Report:
    """`measured` is what the leader read back from the kernel, and found refused, right before its exec."""
    return {
        **_confinement(launch.confinement, measured),
        "memory": _memory(launch, measured),
        "cpu": _cpu(launch, measured),
        "processes": _processes(launch, measured),
        "descriptors": _descriptors(launch, measured),
        "disk": _disk(launch, measured),
    }


def _row(state: str, by: str, why: str) -> Row:
    return {"state": state, "by": by, "why": why}


def _confinement(asked: Confinement | None, measured: Mapping[str, Any]) -> Report:
    held: Mapping[str, bool] = measured.get("held", {})
    if asked is None or not held:
        return dict.fromkeys(MECHANISMS[:6], _row("absent", "", _UNCONFINED))
    abi = measured["landlock"]
    lacking = missing(abi)
    return {
        "filesystem": _filesystem(abi, held, lacking.get("filesystem")),
        "network": _network(asked, held["network"]),
        "signals": _by_kernel(held["signals"], f"Landlock ABI {abi}: its own tree only", lacking.get("signals", "")),
        "abstract_sockets": _by_kernel(held["sockets"], "no socket of that family can be made"),
        "pathname_sockets": _by_kernel(held["sockets"], "no socket of that family can be made"),
        "syscalls": _by_kernel(
            held["sockets"], f"a filter refuses {len(REFUSED) + len(UNKNOWN)} calls and, by their arguments, more"
        ),
    }


def _by_kernel(held: bool, why: str, why_not: str = _NOT_REFUSED) -> Row:
    return _row("enforced", "kernel", why) if held else _row("absent", "", why_not)


def _filesystem(abi: int, held: Mapping[str, bool], lacking: str | None) -> Row:
    if not (held["paths"] and held["attributes"]):
        return _row("absent", "", lacking or _NOT_REFUSED)
    why = f"Landlock ABI {abi} holds what is read, listed, written, made and run; the reaper modes, times and owners"
    return _row("degraded" if lacking else "enforced", "kernel, reaper", f"{why}; {lacking}" if lacking else why)


def _network(asked: Confinement, held: bool) -> Row:
    if asked.ports is None or not held:
        return _row("absent", "", "the profile leaves the network open" if asked.ports is None else _NOT_REFUSED)
    if asked.ports:
        ports = ", ".join(map(str, asked.ports))
        return _row("enforced", "reaper", f"{_NEAR}, and TCP to port {ports} of every address")
    return _row("enforced", "reaper", _NEAR)


def _bounded(by: str, asked: bool, why: str) -> Row:
    return _row("degraded", by, why) if asked else _row("absent", "", "no limit was asked for")


def _processes(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if launch.pids and "landlock" in measured:  # the filter took, and the reaper has answered
        return _row("enforced", "reaper", f"{launch.pids} processes, and {THREADS_A_PROCESS} times as many threads")
    return _bounded("watchdog", bool(launch.pids), "the tree is ended when a look finds it past the limit")


def _memory(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if launch.memory and not 0 < measured["data"] <= launch.memory:
        return _row("absent", "", "RLIMIT_DATA did not take")
    if not launch.memory:
        return _row("absent", "", "no limit was asked for")
    return _row("enforced", "watchdog", "the tree is ended within 0.5 s of crossing; RLIMIT_DATA bounds each process")


def _cpu(launch: Launch, measured: Mapping[str, Any]) -> Row:
    whole = math.ceil(launch.cpu)
    if not launch.cpu or measured["cpus"] > whole:
        return _row("absent", "", "no limit was asked for" if not launch.cpu else "the CPU set did not take")
    why = f"{measured['cpus']} CPUs, nice {measured['nice']}"
    if not measured.get("held", {}).get("sockets"):
        return _row("degraded", "kernel", f"{why}; a process may widen its own set")
    if measured["cpus"] > launch.cpu:
        return _row("degraded", "kernel", f"{why}; a part of a CPU is not held")
    return _row("enforced", "kernel", f"{why}; no process of it can change its set")


def _descriptors(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.fds:
        return _row("absent", "", "no limit was asked for")
    if measured["nofile"] > launch.fds or measured["nofile"] < 0:
        return _row("absent", "", "RLIMIT_NOFILE did not take")
    if measured["uid"] == 0 and "landlock" not in measured:  # else its capabilities are gone
        return _row("degraded", "kernel", "RLIMIT_NOFILE, which root may raise")
    return _row("enforced", "kernel", f"RLIMIT_NOFILE {measured['nofile']} a process")


def _disk(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.file_size or not 0 < measured["fsize"] <= launch.file_size:
        return _row("absent", "", "no limit on a file")
    if not (launch.private and launch.tmp and launch.branch_disk):
        return _row("degraded", "kernel", "RLIMIT_FSIZE bounds each file, nothing bounds their sum")
    why = "the tree is ended within 2 s of crossing what its private folders may hold; RLIMIT_FSIZE bounds each file"
    return _row("enforced", "watchdog", why)

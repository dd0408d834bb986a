"""The isolation report: what each mechanism enforces, by which component, and why not more.
Contains measured facts only.
"""

import math
from collections.abc import Mapping
from typing import Any

from agentbox.policy.limits.reserve import THREADS_PER_PROCESS
from agentbox.sandbox.confinement import Confinement, missing_mechanisms
from agentbox.sandbox.seccomp.call_sets import REFUSED, UNKNOWN
from agentbox.sandbox.spec import Launch

MECHANISMS = (
    *("filesystem", "network", "signals", "abstract_sockets", "pathname_sockets", "syscalls"),
    *("memory", "cpu", "processes", "descriptors", "disk"),
)
_NOT_REFUSED = "an attempt before the start was not refused"
_LOOPBACK_ONLY = "TCP to the gateway, and to its own servers on loopback"
_UNCONFINED = "no ruleset for the agent: confined by the box alone"

Row = dict[str, str]
Report = dict[str, Row]


def report(launch: Launch, measured: Mapping[str, Any]) -> Report:
    """`measured` is what the leader read back from the kernel, and found refused, right before its
    exec.
    """
    return {
        **_confinement(launch.confinement, measured),
        "memory": _memory(launch, measured),
        "cpu": _cpu(launch, measured),
        "processes": _processes(launch, measured),
        "descriptors": _descriptors(launch, measured),
        "disk": _disk(launch, measured),
    }


def _row(state: str, enforced_by: str, reason: str) -> Row:
    return {"state": state, "by": enforced_by, "why": reason}


def _confinement(confinement: Confinement | None, measured: Mapping[str, Any]) -> Report:
    enforced: Mapping[str, bool] = measured.get("held", {})
    if confinement is None or not enforced:
        return dict.fromkeys(MECHANISMS[:6], _row("absent", "", _UNCONFINED))
    abi = measured["landlock"]
    unsupported = missing_mechanisms(abi)
    return {
        "filesystem": _filesystem(abi, enforced, unsupported.get("filesystem")),
        "network": _network(confinement, enforced["network"]),
        "signals": _by_kernel(
            enforced["signals"],
            f"Landlock ABI {abi}: its own tree only",
            unsupported.get("signals", ""),
        ),
        "abstract_sockets": _by_kernel(
            enforced["sockets"], "sockets of that family cannot be created"
        ),
        "pathname_sockets": _by_kernel(
            enforced["sockets"], "sockets of that family cannot be created"
        ),
        "syscalls": _by_kernel(
            enforced["sockets"],
            f"a filter refuses {len(REFUSED) + len(UNKNOWN)} calls, and more by their arguments",
        ),
    }


def _by_kernel(enforced: bool, reason: str, absent_reason: str = _NOT_REFUSED) -> Row:
    return _row("enforced", "kernel", reason) if enforced else _row("absent", "", absent_reason)


def _filesystem(abi: int, enforced: Mapping[str, bool], unsupported: str | None) -> Row:
    if not (enforced["paths"] and enforced["attributes"]):
        return _row("absent", "", unsupported or _NOT_REFUSED)
    reason = (
        f"Landlock ABI {abi} restricts reading, listing, writing, creation and execution; "
        "the reaper restricts modes, times and owners"
    )
    return _row(
        "degraded" if unsupported else "enforced",
        "kernel, reaper",
        f"{reason}; {unsupported}" if unsupported else reason,
    )


def _network(confinement: Confinement, enforced: bool) -> Row:
    if confinement.ports is None or not enforced:
        return _row(
            "absent",
            "",
            "the profile leaves the network open" if confinement.ports is None else _NOT_REFUSED,
        )
    if confinement.ports:
        ports = ", ".join(map(str, confinement.ports))
        return _row(
            "enforced", "reaper", f"{_LOOPBACK_ONLY}, and TCP to port {ports} of every address"
        )
    return _row("enforced", "reaper", _LOOPBACK_ONLY)


def _limited(enforced_by: str, requested: bool, reason: str) -> Row:
    return (
        _row("degraded", enforced_by, reason)
        if requested
        else _row("absent", "", "no limit requested")
    )


def _processes(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if launch.pids and "landlock" in measured:  # the filter is in force, and the reaper answers
        return _row(
            "enforced",
            "reaper",
            f"{launch.pids} processes, and {THREADS_PER_PROCESS} times as many threads",
        )
    return _limited(
        "watchdog", bool(launch.pids), "the tree is ended when a check finds it above the limit"
    )


def _memory(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if launch.memory and not 0 < measured["data"] <= launch.memory:
        return _row("absent", "", "RLIMIT_DATA is not in force")
    if not launch.memory:
        return _row("absent", "", "no limit requested")
    return _row(
        "enforced",
        "watchdog",
        "the tree is ended within 0.5 s of exceeding it; RLIMIT_DATA limits each process",
    )


def _cpu(launch: Launch, measured: Mapping[str, Any]) -> Row:
    cpu_count = math.ceil(launch.cpu)
    if not launch.cpu or measured["cpus"] > cpu_count:
        return _row(
            "absent", "", "no limit requested" if not launch.cpu else "the CPU set is not in force"
        )
    reason = f"{measured['cpus']} CPUs, nice {measured['nice']}"
    if not measured.get("held", {}).get("sockets"):
        return _row("degraded", "kernel", f"{reason}; a process may widen its own set")
    if measured["cpus"] > launch.cpu:
        return _row("degraded", "kernel", f"{reason}; a fraction of a CPU is not enforced")
    return _row("enforced", "kernel", f"{reason}; no process of the tree can change its set")


def _descriptors(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.fds:
        return _row("absent", "", "no limit requested")
    if measured["nofile"] > launch.fds or measured["nofile"] < 0:
        return _row("absent", "", "RLIMIT_NOFILE is not in force")
    # otherwise its capabilities were dropped
    if measured["uid"] == 0 and "landlock" not in measured:
        return _row("degraded", "kernel", "RLIMIT_NOFILE, which root may raise")
    return _row("enforced", "kernel", f"RLIMIT_NOFILE {measured['nofile']} per process")


def _disk(launch: Launch, measured: Mapping[str, Any]) -> Row:
    if not launch.file_size or not 0 < measured["fsize"] <= launch.file_size:
        return _row("absent", "", "no limit on file size")
    if not (launch.private and launch.tmp and launch.branch_disk):
        return _row("degraded", "kernel", "RLIMIT_FSIZE limits each file, nothing limits their sum")
    reason = (
        "the tree is ended within 2 s of exceeding the limits of its private directories; "
        "RLIMIT_FSIZE limits each file"
    )
    return _row("enforced", "watchdog", reason)

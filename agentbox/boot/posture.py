"""Posture: what the kernel enforces on this box, against what the plan promises. Every value is a short text.

Sources: proc(5) for ids, capability sets, `NoNewPrivs` and `Seccomp`; statvfs(3) for mount flags; getrlimit(2);
cgroup v1 and v2 files for limits.
"""

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from agentbox.boot import fingerprint
from agentbox.plan.model import Plan
from agentbox.settings import Paths
from agentbox.supervision import procfs
from agentbox.supervision.boot_record import Drifted, Posture

_NO_CAPABILITY = "none"
_SEALED_MOUNT = "nodev,noexec,nosuid"
_CGROUP = Path("/sys/fs/cgroup")
UNKNOWN = "unknown"


def expected_controls(plan: Plan, paths: Paths) -> dict[str, str]:
    """What must be found. The process engine promises less: `protections_absent` names the rest."""
    common = {
        "capabilities": _NO_CAPABILITY,
        "no_new_privs": "1",
        "landlock": "present",
        "limit.core": "0",
        "limit.nofile": str(plan.resources.nofile),
    }
    if not paths.contained:
        return {**common, "user": "not root"}
    added = sorted({name for delta in plan.exceptions for name in delta.cap_add})
    return {
        **common,
        "user": "1000:1000",
        "capability_bound": str(len(added)),
        "root": "read-only",
        "seccomp": "2",
        "seccomp_fingerprint": fingerprint.expected(),
        "limit.memory": str(plan.resources.memory),
        "limit.pids": str(plan.resources.pids),
        **{f"mount:{row.target}": "nodev,nosuid" if row.exec else _SEALED_MOUNT for row in plan.tmpfs},
    }


def measure_controls(plan: Plan, paths: Paths, landlock_abi: int) -> dict[str, str]:
    """The same keys, as the kernel has them. Raises OSError."""
    status = procfs.status()
    found = {
        "capabilities": _capabilities(status),
        "no_new_privs": status.get("NoNewPrivs", UNKNOWN),
        "landlock": "present" if landlock_abi else "absent",
        "limit.core": str(resource.getrlimit(resource.RLIMIT_CORE)[1]),
        "limit.nofile": str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
    }
    if not paths.contained:
        return {**found, "user": "root" if os.geteuid() == 0 else "not root"}
    return {
        **found,
        "user": f"{os.getuid()}:{os.getgid()}",
        "capability_bound": str((int(status["CapBnd"], 16) | int(status["CapInh"], 16)).bit_count()),
        "root": "read-only" if os.statvfs("/").f_flag & os.ST_RDONLY else "writable",
        "seccomp": status.get("Seccomp", UNKNOWN),
        "seccomp_fingerprint": fingerprint.measure(),
        "limit.memory": _cgroup_limit("memory/memory.limit_in_bytes", "memory.max"),
        "limit.pids": _cgroup_limit("pids/pids.max", "pids.max"),
        **{f"mount:{row.target}": _flags(row.target, exec_allowed=row.exec) for row in plan.tmpfs},
    }


def compare(expected: Mapping[str, str], found: Mapping[str, str]) -> tuple[Drifted, ...]:
    """Every control that is not as expected, by name."""
    return tuple(
        Drifted(control, expected[control], found[control])
        for control in sorted(expected)
        if found[control] != expected[control]
    )


def summary(drifted: tuple[Drifted, ...]) -> Posture:
    """The statement that goes into `boot.json` and into the sentinel."""
    status = procfs.status()
    return Posture(
        uid=os.getuid(),
        caps=status["CapEff"],
        no_new_privs=status.get("NoNewPrivs") == "1",
        seccomp_mode=int(status.get("Seccomp", "0")),
        seccomp_fingerprint=fingerprint.measure(),
        root_read_only=bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        drift=drifted,
    )


def _capabilities(status: Mapping[str, str]) -> str:
    held = int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16)
    return f"{held:016x}" if held else _NO_CAPABILITY


def _flags(target: str, *, exec_allowed: bool) -> str:
    """The protective flags of the mount at `target`; `noexec` is not counted where the plan allows exec."""
    if not os.path.ismount(target):
        return "no mount"
    flags = os.statvfs(target).f_flag
    names = {"nodev": os.ST_NODEV, "noexec": os.ST_NOEXEC, "nosuid": os.ST_NOSUID}
    return ",".join(name for name, bit in names.items() if flags & bit and not (exec_allowed and name == "noexec"))


def _cgroup_limit(v1: str, v2: str) -> str:
    """The limit of this container's own group, which its engine mounts at the root of the cgroup file system."""
    for name in (v2, v1):
        try:
            return (_CGROUP / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
    return UNKNOWN

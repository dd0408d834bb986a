"""Measures each promised control in this process. Standard library only.

Sources: proc(5) for ids, capability sets, `NoNewPrivs`, `Seccomp` and mounts; getrlimit(2); the
files of cgroup v1 and v2 for limits; the device nodes in /dev.
"""

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from agentbox.box.posture import fingerprint
from agentbox.box.posture.promised import READ_ONLY, WRITABLE, groups, tmpfs_flags, tmpfs_text
from agentbox.box.posture.unplanned_mounts import extra_devices, extra_mounts
from agentbox.box.supervision.boot_record import Posture, PostureDrift
from agentbox.core.linux import capabilities, procfs
from agentbox.core.linux.mountinfo import Mount, containing_mount, mounts
from agentbox.core.paths import Paths
from agentbox.plan.merge import ContainerProfile, effective_profile
from agentbox.plan.model import Plan, TmpfsPlan

_CGROUP = Path("/sys/fs/cgroup")
_NO_MOUNT = "no mount"
UNKNOWN = "unknown"


def measured_controls(
    plan: Plan, paths: Paths, landlock_abi: int, target: str = ""
) -> dict[str, str]:
    """At least the promised controls, as the kernel reports them. Raises OSError."""
    status = procfs.status()
    controls = {
        "capabilities": capabilities.format_mask(_capability_mask(status)),
        "no_new_privs": status.get("NoNewPrivs", UNKNOWN),
        "landlock": "present" if landlock_abi else "absent",
        "limit.core": str(resource.getrlimit(resource.RLIMIT_CORE)[1]),
        "limit.nofile": str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
    }
    if not paths.is_container:
        return {**controls, "user": "root" if os.geteuid() == 0 else "not root"}
    profile = effective_profile(plan)
    return {
        **controls,
        "user": f"{os.getuid()}:{os.getgid()}",
        "groups": groups(set(os.getgroups())),
        "capability_bound": capabilities.format_mask(
            int(status["CapBnd"], 16) | int(status["CapInh"], 16)
        ),
        "seccomp": status.get("Seccomp", UNKNOWN),
        "seccomp_fingerprint": fingerprint.measure(),
        "limit.cpus": _cpus(),
        "limit.memory": _cgroup("memory.max", "memory/memory.limit_in_bytes"),
        "limit.pids": _cgroup("pids.max", "pids/pids.max"),
        "devices.extra": extra_devices(profile),
        **_mounts(profile, paths, mounts(), target),
    }


def summary(drifted: tuple[PostureDrift, ...]) -> Posture:
    """The posture as stored in `boot.json` and in the sentinel."""
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


def _capability_mask(status: Mapping[str, str]) -> int:
    return int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16)


def _mounts(
    profile: ContainerProfile, paths: Paths, table: Mapping[str, Mount], platform: str
) -> dict[str, str]:
    secrets = [
        row for target, row in table.items() if target.startswith(str(paths.mounted_secrets))
    ]
    writable = sorted(row.target for row in secrets if not row.read_only)
    return {
        "root": _access(table.get("/")),
        "proc": _access(containing_mount("/proc/sys", table)),
        "sys": _access(containing_mount("/sys", table)),
        "secrets": f"writable: {', '.join(writable)}" if writable else READ_ONLY,
        f"mount:{paths.manifest}": _access(table.get(str(paths.manifest))),
        **{f"mount:{row.target}": _access(table.get(row.target)) for row in profile.volumes},
        **{
            f"mount:{row.target}": measured_tmpfs(row, table.get(row.target), platform)
            for row in profile.tmpfs
        },
        "mounts.extra": extra_mounts(profile, paths, table, platform),
    }


def _access(row: Mount | None) -> str:
    return _NO_MOUNT if row is None else READ_ONLY if row.read_only else WRITABLE


def measured_tmpfs(expected: TmpfsPlan, row: Mount | None, platform: str) -> str:
    """The expected protective flags that are set, and the size."""
    if row is None:
        return _NO_MOUNT
    if row.kind != "tmpfs":
        return row.kind
    flags = tmpfs_flags(expected, platform)
    return tmpfs_text(flags, row.flags & flags, row.size_kib)


def _cgroup(v2: str, v1: str) -> str:
    """A limit of this container's own group, which its engine mounts at the root of the cgroup file
    system.
    """
    for name in (v2, v1):
        try:
            return (_CGROUP / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
    return UNKNOWN


def _cpus() -> str:
    """Cores: quota divided by period; `max` without a quota."""
    quota, _, period = _cgroup("cpu.max", "cpu/cpu.cfs_quota_us").partition(" ")
    period = period or _cgroup("cpu.max", "cpu/cpu.cfs_period_us")
    if not (quota.lstrip("-").isdecimal() and period.isdecimal()):
        return quota
    return f"{int(quota) / int(period):g}" if int(quota) > 0 else "max"

"""The controls that a plan promises, each with its expected text. Standard library only."""

import grp

from agentbox.box.posture import fingerprint
from agentbox.core.linux import capabilities
from agentbox.core.linux.mountinfo import tmpfs_kib
from agentbox.core.paths import Paths
from agentbox.plan.merge import DEFAULT_SECCOMP, GID, ContainerProfile, effective_profile
from agentbox.plan.model import Plan, TmpfsPlan
from agentbox.plan.names import KUBERNETES

NOTHING = "none"
READ_ONLY, WRITABLE = "read-only", "writable"


def promised_controls(plan: Plan, paths: Paths, target: str = "") -> dict[str, str]:
    """The expected controls on that target. The process engine and Kubernetes promise less:
    `protections_absent` lists the rest. Raises PlanError.
    """
    common = {
        "capabilities": capabilities.NONE,
        "no_new_privs": "1",
        "landlock": "present",
        "limit.core": "0",
        "limit.nofile": str(plan.resources.nofile),
    }
    if not paths.is_container:
        return {**common, "user": "not root"}
    profile = effective_profile(plan)
    return {
        **common,
        **_identity(profile),
        **_seccomp(profile),
        "limit.cpus": f"{plan.resources.cpus:g}",
        "limit.memory": str(plan.resources.memory),
        **({} if target == KUBERNETES else {"limit.pids": str(plan.resources.pids)}),
        "devices.extra": NOTHING,
        **_mounts(profile, paths, target),
    }


def _identity(profile: ContainerProfile) -> dict[str, str]:
    return {
        "user": profile.user,
        "groups": groups(set(map(_number, profile.group_add))),
        "capability_bound": capabilities.format_names(profile.cap_add),
    }


def _number(group: str) -> int:
    """The group id from this box's /etc/group, as the engine resolves it; -1 for an unknown
    name.
    """
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError:
        return -1


def groups(numbers: set[int]) -> str:
    """Supplementary groups besides the box's own, in order."""
    return ",".join(map(str, sorted(numbers - {GID}))) or NOTHING


def _seccomp(profile: ContainerProfile) -> dict[str, str]:
    """The fingerprint is that of the baseline list; for another list only the mode is known."""
    controls = (
        {"seccomp_fingerprint": fingerprint.expected()}
        if profile.seccomp == DEFAULT_SECCOMP
        else {}
    )
    return {"seccomp": "2", **controls}


def _mounts(profile: ContainerProfile, paths: Paths, platform: str) -> dict[str, str]:
    volumes = {
        f"mount:{row.target}": READ_ONLY if row.read_only else WRITABLE for row in profile.volumes
    }
    return {
        "root": READ_ONLY,
        "proc": READ_ONLY,
        "sys": READ_ONLY,
        "secrets": READ_ONLY,
        f"mount:{paths.manifest}": READ_ONLY,
        **volumes,
        **{f"mount:{row.target}": _tmpfs(row, platform) for row in profile.tmpfs},
        "mounts.extra": NOTHING,
    }


def _tmpfs(row: TmpfsPlan, platform: str) -> str:
    flags = tmpfs_flags(row, platform)
    return tmpfs_text(flags, flags, tmpfs_kib(row.size))


def tmpfs_flags(row: TmpfsPlan, platform: str) -> frozenset[str]:
    """The protective flags on a target: no `noexec` where the plan allows programs; none on
    Kubernetes.
    """
    if platform == KUBERNETES:
        return frozenset()
    return frozenset(["nodev", "nosuid", *([] if row.exec else ["noexec"])])


def tmpfs_text(
    expected_flags: frozenset[str], actual_flags: frozenset[str], size_kib: int | None
) -> str:
    """The text for a memory file system; flags only where any are expected."""
    flags = f"{','.join(sorted(actual_flags)) or 'without flags'} " if expected_flags else ""
    return f"tmpfs {flags}{size_kib if size_kib is not None else 'any'} KiB"

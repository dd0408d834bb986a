"""Mounts and devices that the plan does not request. Those that engines add to every container are
listed by name.
"""

import os
import stat
from collections.abc import Iterator, Mapping

from agentbox.core.linux.mountinfo import Mount
from agentbox.core.paths import Paths
from agentbox.plan.merge import ContainerProfile
from agentbox.plan.names import KUBERNETES
from agentbox.policy.protected_paths import is_at_or_below

_NOTHING = "none"
_MAX_LISTED = 5
# The OCI runtime specification, "Default Devices" and "Default Filesystems"; the files that docker,
# podman and the kubelet add. Below /proc and /sys only the runtime can mount (runc rejects other
# targets there).
_DEVICES = frozenset(
    f"/dev/{name}"
    for name in ("console", "full", "null", "ptmx", "random", "tty", "urandom", "zero")
)
_ENGINE = frozenset(
    [
        "/",
        "/dev",
        "/dev/mqueue",
        "/dev/pts",
        "/dev/shm",
        "/dev/termination-log",
        "/etc/hostname",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/run/.containerenv",
    ]
)
_KERNEL = ("/proc", "/sys")
_SEPARATE_MOUNTS = ("/dev/pts", "/dev/shm", "/dev/mqueue")


def extra_mounts(
    profile: ContainerProfile, paths: Paths, table: Mapping[str, Mount], platform: str = ""
) -> str:
    """Targets of unexpected mounts, `none` without any. A vendor's runtime adds its own libraries,
    read-only: with a device request or a runtime such mounts are not counted. `platform` is the
    target that the box runs on.
    """
    vendor = bool(profile.device_requests or profile.runtime)
    expected = {*_ENGINE, *_DEVICES, str(paths.manifest)}
    expected |= {row.target for row in profile.tmpfs} | {row.target for row in profile.volumes}
    trees = (*_KERNEL, str(paths.mounted_secrets), *profile.devices)
    return _join_names(
        target
        for target, row in table.items()
        if target not in expected
        and not any(is_at_or_below(target, tree) for tree in trees)
        and not (vendor and row.read_only)
        and not (platform == KUBERNETES and _is_pod_tmpfs(row))
    )


def _is_pod_tmpfs(row: Mount) -> bool:
    """Whether Podman or CRI-O mounted it below a read-only root: `podman kube play` from 4.4 on
    (containers/podman, `read-only-tmpfs`), CRI-O with `read_only` (crio.conf(5)).
    """
    flags = {"nosuid", "nodev"}
    return row.target == "/var/tmp" and row.kind == "tmpfs" and row.flags >= flags


def extra_devices(profile: ContainerProfile) -> str:
    """Unexpected device nodes below /dev. The nodes of a driver (`/dev/nvidia…`) are expected with
    its request.
    """
    vendors = tuple(
        f"/dev/{name}"
        for name in {row.driver for row in profile.device_requests} | {profile.runtime}
        if name
    )
    return _join_names(
        node
        for node in _device_nodes("/dev")
        if node not in _DEVICES
        and not any(is_at_or_below(node, path) for path in profile.devices)
        and not (vendors and node.startswith(vendors))
    )


def _device_nodes(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and entry.path not in _SEPARATE_MOUNTS:
                yield from _device_nodes(entry.path)
            elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                yield entry.path


def _join_names(items: Iterator[str]) -> str:
    names = sorted(items)
    more = [f"and {len(names) - _MAX_LISTED} more"] if len(names) > _MAX_LISTED else []
    return ", ".join(names[:_MAX_LISTED] + more) or _NOTHING

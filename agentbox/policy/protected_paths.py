"""What security exceptions may not weaken: paths of the box and of the host, and the empty
capability set. Used by rule E203, which informs the author of a manifest, and by the merge, which
rejects what the rules let pass. Standard library only.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

PROTECTED_PATHS: Final = (
    "/bin",
    "/etc",
    "/lib",
    "/lib64",
    "/nix",
    "/opt/agentbox",
    "/proc",
    "/run/agentbox",
    "/run/secrets",
    "/sbin",
    "/sys",
    "/usr",
)
"""Paths of the box at and below which nothing may be mounted."""
UNCOVERABLE_PATHS: Final = ("/", "/dev", "/opt", "/var", "/var/lib")
"""Paths that may contain mounts, but may not be covered themselves."""
TMPFS_TARGETS: Final = ("/run", "/tmp", "/var/log", "/var/log/supervisor", "/var/run")
VOLUME_TARGETS: Final = (
    "/var/lib/agentbox",
    "/var/lib/agentbox/backups",
    "/var/lib/agentbox/branches",
    "/workspace",
)
"""Mounts of the baseline: noexec memory that may grow, and volumes."""
_HOST_PATHS: Final = ("/etc", "/root", "/proc", "/sys", "/dev", "/run", "/var/run")
_KEY_DIRECTORIES: Final = re.compile(
    r"/(home|Users)/[^/]+(/\.(ssh|gnupg|aws|azure|kube|docker|config/gcloud)(/.*)?)?/?"
)
_SOCKETS: Final = re.compile(r".*/(docker|podman|containerd|crio)(\.sock|/.*\.sock)")
_SETID: Final = 0o6000
_ALL_CAPABILITIES: Final = ("ALL", "CAP_ALL")


class TmpfsMount(Protocol):
    """A tmpfs of an exception, in the manifest or in the plan."""

    @property
    def target(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def exec(self) -> bool: ...


class VolumeMount(Protocol):
    """A volume of an exception, in the manifest or in the plan."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...


def baseline_violations(
    *,
    cap_add: Iterable[str] = (),
    tmpfs: Iterable[TmpfsMount] = (),
    volumes: Iterable[VolumeMount] = (),
) -> Iterator[tuple[str, str]]:
    """The field and a description of each violation. Empty for an exception that only adds."""
    if set(cap_add) & set(_ALL_CAPABILITIES):
        yield "cap_add", "adds every capability"
    for mount in tmpfs:
        if hides_image(mount.target):
            yield "tmpfs", f"hides {mount.target} of the image"
        if int(mount.mode, 8) & _SETID:
            yield "tmpfs", f"mode {mount.mode} of {mount.target} has a setuid or setgid bit"
        if mount.target in TMPFS_TARGETS and mount.exec:
            yield (
                "tmpfs",
                f"lets programs run from {mount.target}, which the baseline mounts noexec",
            )
        if mount.target in VOLUME_TARGETS:
            yield "tmpfs", f"hides the volume at {mount.target}"
    for volume in volumes:
        if hides_image(volume.target):
            yield "volumes", f"hides {volume.target} of the image"
        if volume.target in (*TMPFS_TARGETS, *VOLUME_TARGETS):
            yield "volumes", f"replaces the baseline's mount at {volume.target}"
        if volume.source.startswith("/") and _is_sensitive(volume.source):
            yield "volumes", f"mounts {volume.source} of the host"


def hides_image(target: str) -> bool:
    """True if a mount at that target would cover a protected path of the image."""
    return target in ("", *UNCOVERABLE_PATHS) or any(
        is_at_or_below(target, path) for path in PROTECTED_PATHS
    )


def is_at_or_below(path: str, directory: str) -> bool:
    """For absolute, normalised paths."""
    return path == directory or path.startswith(f"{directory}/")


def _is_sensitive(source: str) -> bool:
    is_inside = any(is_at_or_below(source, directory) for directory in _HOST_PATHS)
    return (
        source == "/"
        or is_inside
        or bool(_KEY_DIRECTORIES.fullmatch(source))
        or bool(_SOCKETS.fullmatch(source))
    )

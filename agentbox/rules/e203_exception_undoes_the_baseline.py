"""E203: an exception that would take protection away."""

import re
from collections.abc import Iterator

from agentbox.manifest import Finding
from agentbox.rules.view import View

CODE, SINCE = "E203", "0.1"
TITLE = "exception undoes the baseline"
WHY = """Exceptions add what a feature needs; they never undo. All capabilities, no seccomp list, a mount over the
system or an engine socket from the host would end the confinement of the box."""
READS = (
    "security.exceptions",
    "security.exceptions.*.cap_add",
    "security.exceptions.*.seccomp",
    "security.exceptions.*.tmpfs",
    "security.exceptions.*.volumes",
)
BAD = """
[security.exceptions.desktop]
reason = "the display server wants it"
volumes = [{ source = "x", target = "/etc" }]
"""
GOOD = """
[security.exceptions.desktop]
reason = "the display server wants it"
volumes = [{ source = "x", target = "/var/lib/x" }]
"""
EACH = "security.exceptions"


_TABLE = "security.exceptions.*"
_SYSTEM = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt/agentbox", "/nix", "/proc", "/sys", "/run/agentbox")
_HOST = ("/etc", "/root", "/proc", "/sys", "/dev", "/run", "/var/run")
_KEY_FOLDERS = re.compile(r"/(home|Users)/[^/]+(/\.(ssh|gnupg|aws|azure|kube|docker|config/gcloud)(/.*)?)?/?")
_SOCKETS = re.compile(r".*/(docker|podman|containerd|crio)(\.sock|/.*\.sock)")
_SETUID = 0o6000


def check(view: View) -> Iterator[Finding]:
    """One finding a field that undoes something."""
    remedy = "Exceptions add, they never undo: name the narrower field or place that the feature needs."
    for field, message in _undone(view):
        yield view.finding(f"{_TABLE}.{field}", message=message, remedy=remedy)


def _undone(view: View) -> Iterator[tuple[str, str]]:
    if "ALL" in view[f"{_TABLE}.cap_add"]:
        yield "cap_add", "adds every capability"
    seccomp = view[f"{_TABLE}.seccomp"]
    if seccomp and seccomp not in view.seccomp_files:
        yield "seccomp", f'"{seccomp}" is no file of config/seccomp/'
    for mount in view[f"{_TABLE}.tmpfs"]:
        if _covers_system(mount.target):
            yield "tmpfs", f"hides {mount.target} of the image"
        if int(mount.mode, 8) & _SETUID:
            yield "tmpfs", f"mode {mount.mode} of {mount.target} has a setuid or setgid bit"
    for volume in view[f"{_TABLE}.volumes"]:
        if _covers_system(volume.target):
            yield "volumes", f"hides {volume.target} of the image"
        if volume.source.startswith("/") and _is_sensitive(volume.source):
            yield "volumes", f"gives the box {volume.source} of the host"


def _covers_system(target: str) -> bool:
    return target in ("", "/") or _at_or_below(target, _SYSTEM)


def _is_sensitive(source: str) -> bool:
    inside = _at_or_below(source, _HOST)
    return source == "/" or inside or bool(_KEY_FOLDERS.fullmatch(source)) or bool(_SOCKETS.fullmatch(source))


def _at_or_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

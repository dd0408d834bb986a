"""Only root owns or may write files, except the few directories of the box; nothing is set-id."""

from agentbox.host.image.check.layers import ImageRoot
from agentbox.host.image.tree.paths_and_modes import directory_mode


def unexpected_modes(root: ImageRoot) -> list[str]:
    """Report entries with a mode or an owner that differs from the rules."""
    findings = []
    for placed in root.entries:
        entry = placed.entry
        location = f"layer {placed.layer}, {entry.path}"
        allowed = entry.type == "dir" and (entry.mode, entry.uid, entry.gid) == directory_mode(
            entry.path
        )
        if entry.type == "link" or allowed:
            continue
        if entry.mode & 0o7022:
            findings.append(f"{location}: mode {entry.mode:o}")
        if (entry.uid, entry.gid) != (0, 0):
            findings.append(f"{location}: owned by {entry.uid}:{entry.gid}")
    return findings

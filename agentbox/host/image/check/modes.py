"""Nobody but root owns or may write anything, save the few folders that are the box's; nothing is set-id."""

from agentbox.host.image.check.layers import Root
from agentbox.host.image.tree.rules import folder


def loose(root: Root) -> list[str]:
    """One sentence an entry with a mode or an owner that the rules do not give it."""
    found = []
    for each in root.all:
        entry = each.entry
        where = f"layer {each.layer}, {entry.path}"
        allowed = entry.type == "dir" and (entry.mode, entry.uid, entry.gid) == folder(entry.path)
        if entry.type == "link" or allowed:
            continue
        if entry.mode & 0o7022:
            found.append(f"{where}: mode {entry.mode:o}")
        if (entry.uid, entry.gid) != (0, 0):
            found.append(f"{where}: owned by {entry.uid}:{entry.gid}")
    return found

"""No link leads nowhere."""

from agentbox.host.image.check.layers import Root
from agentbox.host.image.check.suggested import suggested

# Folders that the kernel or the engine fills, so that no layer can hold what is in them.
_LIVE = ("proc/", "sys/", "dev/", "run/")


def dangling(root: Root) -> list[str]:
    """One sentence a link whose target no layer has."""
    found = []
    for each in root.all:
        entry = each.entry
        if entry.type != "link" or _live(entry.path, entry.target) or suggested(entry.owner, entry.path):
            continue
        if root.resolve(entry.path) is None:
            found.append(
                f"layer {each.layer}, {entry.path} ({entry.owner}): leads to {entry.target}, which no layer has"
            )
    return found


def _live(path: str, target: str) -> bool:
    parts = target.strip("/").split("/") if target.startswith("/") else [*path.split("/")[:-1], *target.split("/")]
    at: list[str] = []
    for part in parts:
        at = at[:-1] if part == ".." else [*at, part]
    return "/".join(at).startswith(_LIVE)

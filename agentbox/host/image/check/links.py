"""No link is dangling."""

from agentbox.host.image.check.layers import ImageRoot
from agentbox.host.image.check.suggested import is_suggested

# Directories that the kernel or the engine fills, so that layers cannot contain their targets.
_RUNTIME_DIRECTORIES = ("proc/", "sys/", "dev/", "run/")


def dangling_links(root: ImageRoot) -> list[str]:
    """Report every link whose target is in no layer."""
    findings = []
    for placed in root.entries:
        entry = placed.entry
        if (
            entry.type != "link"
            or _is_runtime_path(entry.path, entry.target)
            or is_suggested(entry.owner, entry.path)
        ):
            continue
        if root.resolve(entry.path) is None:
            findings.append(
                f"layer {placed.layer}, {entry.path} ({entry.owner}): points to {entry.target}, "
                "which is in no layer"
            )
    return findings


def _is_runtime_path(path: str, target: str) -> bool:
    parts = (
        target.strip("/").split("/")
        if target.startswith("/")
        else [*path.split("/")[:-1], *target.split("/")]
    )
    resolved: list[str] = []
    for segment in parts:
        resolved = resolved[:-1] if segment == ".." else [*resolved, segment]
    return "/".join(resolved).startswith(_RUNTIME_DIRECTORIES)

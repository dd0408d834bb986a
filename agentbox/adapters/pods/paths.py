"""Paths of pods: `a/b` is an object, `a/b/` a container, and `` the root container. Nothing is ever normalised (P9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentbox.adapters.runtime.checks import check_text
from agentbox.core.records.wire import refuse

MAX_PATH = 1024  # bytes
MAX_SEGMENT = 255  # bytes: what a file system takes as one name
RESERVED = ".agentbox"  # names that start so are ours
Wanted = Literal["object", "container", "either"]


@dataclass(frozen=True, slots=True)
class PodPath:
    """A path that was checked. `parts` is empty for the root."""

    text: str
    parts: tuple[str, ...]
    is_container: bool

    @property
    def name(self) -> str:
        return self.parts[-1]


def parse(path: str, wanted: Wanted = "object", at: str = "/path") -> PodPath:
    """The path. Raises ValidationError for what is no path, or not of the kind that is wanted."""
    check_text(path, at)
    if path == "":
        if wanted == "container":
            return PodPath("", (), True)
        raise refuse(at, "must not be empty")
    is_container = path.endswith("/")
    if wanted != "either" and is_container != (wanted == "container"):
        raise refuse(at, "must end with / for a container" if wanted == "container" else "must not end with /")
    if path.startswith("/"):
        raise refuse(at, "must be relative")
    if len(path.encode()) > MAX_PATH:
        raise refuse(at, f"has more than {MAX_PATH} bytes")
    parts = tuple(path.removesuffix("/").split("/"))
    if (reason := next(filter(None, map(wrong, parts)), None)) is not None:
        raise refuse(at, reason)
    return PodPath(path, parts, is_container)


def wrong(name: str) -> str | None:
    """Why a name cannot be a segment; None when it can."""
    if name in ("", ".", ".."):
        return "has an empty segment, or one that is . or .."
    if "\\" in name or any(ord(char) < 0x20 or ord(char) == 0x7F for char in name):
        return "holds a backslash or a control character"
    if name.startswith(RESERVED):
        return f"has a segment that starts with {RESERVED}"
    if len(name.encode(errors="surrogatepass")) > MAX_SEGMENT:
        return f"has a segment of more than {MAX_SEGMENT} bytes"
    return None


def listed(names: Sequence[str]) -> list[str]:
    """Of the names in a folder those that a path can hold, in byte order."""
    return sorted((name for name in names if _is_text(name) and wrong(name) is None), key=str.encode)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

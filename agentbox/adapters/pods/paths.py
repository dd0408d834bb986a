"""Paths of pods: `a/b` is an object, `a/b/` a container, and `` the root container. Nothing is ever normalised (P9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentbox.adapters.runtime.checks import check_text
from agentbox.core.records.wire import invalid_value

MAX_PATH = 1024  # bytes
MAX_SEGMENT = 255  # bytes: what a file system takes as one name
RESERVED_PREFIX = ".agentbox"  # names that start so are ours
PathKind = Literal["object", "container", "either"]


@dataclass(frozen=True, slots=True)
class PodPath:
    """A path that was checked. `parts` is empty for the root."""

    text: str
    parts: tuple[str, ...]
    is_container: bool

    @property
    def name(self) -> str:
        return self.parts[-1]


def parse_path(path: str, kind: PathKind = "object", pointer: str = "/path") -> PodPath:
    """The path. Raises ValidationError for what is no path, or not of the kind that is wanted."""
    check_text(path, pointer)
    if path == "":
        if kind == "container":
            return PodPath("", (), True)
        raise invalid_value(pointer, "must not be empty")
    is_container = path.endswith("/")
    if kind != "either" and is_container != (kind == "container"):
        raise invalid_value(
            pointer,
            "must end with / for a container" if kind == "container" else "must not end with /",
        )
    if path.startswith("/"):
        raise invalid_value(pointer, "must be relative")
    if len(path.encode()) > MAX_PATH:
        raise invalid_value(pointer, f"has more than {MAX_PATH} bytes")
    parts = tuple(path.removesuffix("/").split("/"))
    if (reason := next(filter(None, map(segment_error, parts)), None)) is not None:
        raise invalid_value(pointer, reason)
    return PodPath(path, parts, is_container)


def segment_error(name: str) -> str | None:
    """Why a name cannot be a segment; None when it can."""
    if name in ("", ".", ".."):
        return "has an empty segment, or one that is . or .."
    if "\\" in name or any(ord(char) < 0x20 or ord(char) == 0x7F for char in name):
        return "holds a backslash or a control character"
    if name.startswith(RESERVED_PREFIX):
        return f"has a segment that starts with {RESERVED_PREFIX}"
    if len(name.encode(errors="surrogatepass")) > MAX_SEGMENT:
        return f"has a segment of more than {MAX_SEGMENT} bytes"
    return None


def valid_names(names: Sequence[str]) -> list[str]:
    """Of the names in a folder those that a path can hold, in byte order."""
    return sorted(
        (name for name in names if _is_text(name) and segment_error(name) is None), key=str.encode
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

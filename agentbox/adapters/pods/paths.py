"""Paths of pods: `a/b` is an object, `a/b/` a container, and `` the root container. Paths are never
normalised (P9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentbox.adapters.runtime.input_checks import check_text
from agentbox.core.records.wire import invalid_value

MAX_PATH = 1024  # bytes
MAX_SEGMENT = 255  # bytes: the limit of file systems for a name
RESERVED_PREFIX = ".agentbox"  # prefix of internal names
PathKind = Literal["object", "container", "either"]


@dataclass(frozen=True, slots=True)
class PodPath:
    """A checked path. `parts` is empty for the root."""

    text: str
    parts: tuple[str, ...]
    is_container: bool

    @property
    def name(self) -> str:
        return self.parts[-1]


def parse_path(path: str, kind: PathKind = "object", pointer: str = "/path") -> PodPath:
    """Return the path. Raises ValidationError if it is invalid or of another kind."""
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
    """Return why a name is not a valid segment; None if it is."""
    if name in ("", ".", ".."):
        return "has an empty segment, or one that is . or .."
    if "\\" in name or any(ord(char) < 0x20 or ord(char) == 0x7F for char in name):
        return "contains a backslash or a control character"
    if name.startswith(RESERVED_PREFIX):
        return f"has a segment that starts with {RESERVED_PREFIX}"
    if len(name.encode(errors="surrogatepass")) > MAX_SEGMENT:
        return f"has a segment of more than {MAX_SEGMENT} bytes"
    return None


def valid_names(names: Sequence[str]) -> list[str]:
    """Return the directory entries that are valid segments, in byte order."""
    return sorted(
        (name for name in names if _is_text(name) and segment_error(name) is None), key=str.encode
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

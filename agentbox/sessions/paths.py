"""Paths of the protocol: agents see the branch where it is, clients see it at `/workspace`. Only
members that the schema calls paths are changed, and only whole components at their beginning.
"""

from collections.abc import Mapping
from typing import Any, Final

from agentbox.contracts.sessions import WORKSPACE

_PATHS: Final = frozenset({"path", "cwd"})  # in locations, diffs, fs/* and terminal/*
_URIS: Final = frozenset({"uri"})  # of resource links and embedded resources
_FILE: Final = "file://"
# Members whose content is the agent's or the tool's own, not the protocol's.
_OPAQUE: Final = frozenset({"_meta", "rawInput", "rawOutput", "text", "content_text"})


class PathMap:
    """`inside`: the directory of the branch in the box."""

    def __init__(self, inside: str) -> None:
        self._inside = inside.rstrip("/")

    def to_client(self, value: Any) -> Any:
        """A message of the agent as the client gets it."""
        return _changed(value, self._inside, WORKSPACE)

    def to_agent(self, value: Any) -> Any:
        """A message of the client as the agent gets it."""
        return _changed(value, WORKSPACE, self._inside)

    def inner(self, path: str) -> str:
        """One path of a client."""
        return replace_root(path, WORKSPACE, self._inside)

    def relative(self, path: str) -> str | None:
        """Where a path of the agent lies below its branch; None if it is elsewhere."""
        if path == self._inside:
            return ""
        return (
            path.removeprefix(f"{self._inside}/") if path.startswith(f"{self._inside}/") else None
        )


def replace_root(path: str, old: str, new: str) -> str:
    """The path with another root, if it lies below the old one."""
    if path == old:
        return new
    return f"{new}/{path[len(old) + 1 :]}" if path.startswith(f"{old}/") else path


def _changed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, list):
        return [_changed(one, old, new) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _member(name, member, old, new) for name, member in value.items()}


def _member(name: str, value: Any, old: str, new: str) -> Any:
    if name in _OPAQUE:
        return value
    if name in _PATHS and isinstance(value, str):
        return replace_root(value, old, new)
    if name in _URIS and isinstance(value, str) and value.startswith(_FILE):
        return _FILE + replace_root(value.removeprefix(_FILE), old, new)
    return _changed(value, old, new)

"""Paths of this host and of the box in messages of ACP: the project's folder is `/workspace` there.
Only the path fields of the protocol's schema are changed, by whole components.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

WORKSPACE: Final = "/workspace"
_FILE: Final = "file://"

_Map = Callable[[str], str]


class OutsideProject(ValueError):
    """The folder of a session that is not in the project. `path` is that of the message."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is outside the project")
        self.path = path


class ProjectPaths:
    """`project` is the folder of this host that is mounted. An editor may call it by another name
    (a link): then answers use that name too.
    """

    def __init__(self, project: Path) -> None:
        self._real = project.resolve()
        self._shown = str(self._real)

    @property
    def project(self) -> str:
        """The folder, as the editor calls it."""
        return self._shown

    def to_box(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message of the editor, with paths of the box. Raises OutsideProject if a session's own
        folder is elsewhere; other paths stay as they are then.
        """
        params = message.get("params")
        if not isinstance(params, dict):
            result = message.get("result")
            return {**message, "result": _changed(result, self._in_box)} if result else message
        params = _changed(params, self._in_box)
        original = message["params"]
        for name in ("cwd", "additionalDirectories"):
            if name in original:
                params[name] = _each(original[name], self._folder)
        return {**message, "params": params}

    def to_editor(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message of the box, with paths of this host."""
        return {
            name: _changed(value, self._on_host) if name in ("params", "result") else value
            for name, value in message.items()
        }

    def _folder(self, path: str) -> str:
        """The session's folder in the box; remembers the name that the editor has for the
        project.
        """
        try:
            relative = Path(path).resolve().relative_to(self._real)
        except (ValueError, OSError) as error:
            raise OutsideProject(path) from error
        shown = Path(path)
        if not relative.parts or shown.parts[-len(relative.parts) :] == relative.parts:
            self._shown = str(Path(*shown.parts[: len(shown.parts) - len(relative.parts)]))
        return str(Path(WORKSPACE, relative))

    def _in_box(self, path: str) -> str:
        for root in (self._shown, str(self._real)):
            if (inside := _moved(path, root, WORKSPACE)) is not None:
                return inside
        return path

    def _on_host(self, path: str) -> str:
        moved = _moved(path, WORKSPACE, self._shown)
        return path if moved is None else moved


def _moved(path: str, root: str, target: str) -> str | None:
    """The path below `target` instead of `root`; None if it is not below `root`. Whole components:
    `/workspace2` is not below `/workspace`.
    """
    if path == root:
        return target
    if not path.startswith(root.rstrip("/") + "/"):
        return None
    return target.rstrip("/") + path[len(root.rstrip("/")) :]


def _uri(uri: str, change: _Map) -> str:
    """A `file` URI; others are of another world."""
    if not uri.startswith(_FILE + "/"):
        return uri
    parts = urlsplit(uri)
    path = unquote(parts.path)
    moved = change(path)
    return uri if moved == path else parts._replace(path=quote(moved)).geturl()


def _each(value: Any, change: _Map) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    return value


def _changed(document: Any, change: _Map) -> Any:
    """`params` or `result` with the path fields of the schema changed."""
    if not isinstance(document, Mapping):
        return document
    found = deepcopy(dict(document))
    for name in ("cwd", "path", "additionalDirectories"):
        if name in found:
            found[name] = _each(found[name], change)
    _change_blocks(found.get("prompt"), change)
    for name in ("update", "toolCall"):
        _change_update(found.get(name), change)
    for session in _objects(found.get("sessions")):
        for name in ("cwd", "additionalDirectories"):
            if name in session:
                session[name] = _each(session[name], change)
    return found


def _change_update(update: Any, change: _Map) -> None:
    """A `session/update`, or the tool call of a `session/request_permission`."""
    if not isinstance(update, dict):
        return
    for location in _objects(update.get("locations")):
        _change_member(location, "path", change)
    content = update.get("content")
    _change_block(content, change)  # of a message: one block
    for part in _objects(content):  # of a tool call: several parts
        if part.get("type") == "diff":
            _change_member(part, "path", change)
        _change_block(part.get("content"), change)


def _change_blocks(blocks: Any, change: _Map) -> None:
    for block in _objects(blocks):
        _change_block(block, change)


def _change_block(block: Any, change: _Map) -> None:
    """A content block: a link to a resource, or a resource itself."""
    if not isinstance(block, dict):
        return
    for holder in (block, block.get("resource")):
        if isinstance(holder, dict) and isinstance(holder.get("uri"), str):
            holder["uri"] = _uri(holder["uri"], change)


def _change_member(holder: dict[str, Any], name: str, change: _Map) -> None:
    if isinstance(holder.get(name), str):
        holder[name] = change(holder[name])


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []

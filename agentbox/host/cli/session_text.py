"""What happens in a session, as text for a person: what the agent says as it comes, tool calls and
notes on lines of their own. Text that an agent chose is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentbox.core import clock
from agentbox.core.visible_text import escape_invisible

if TYPE_CHECKING:
    from agentbox.contracts.sessions import Session, SessionItem

_MESSAGES = {"agent_message_chunk": "agent", "agent_thought_chunk": "thought"}


class SessionText:
    """Turns items into text, in their order."""

    def __init__(self) -> None:
        self._speaker = ""  # of the text that the line belongs to
        self._at_start = True

    def format(self, item: SessionItem) -> str:
        """The text to write for the next item."""
        kind = str(item.data.get("sessionUpdate", ""))
        if item.kind == "update" and kind in _MESSAGES:
            return self._spoken(_MESSAGES[kind], _block_text(item.data.get("content")))
        return "".join(self._line(line) for line in _lines(item))

    def finish(self) -> str:
        """What ends the last line."""
        return "" if self._at_start else "\n"

    def _spoken(self, speaker: str, text: str) -> str:
        shown = escape_invisible(text, tabs=True, lines=True)
        if not shown:
            return ""
        head = ""
        if speaker != self._speaker:
            head = self._break() + ("(thinks) " if speaker == "thought" else "")
        self._speaker, self._at_start = speaker, shown.endswith("\n")
        return head + shown

    def _line(self, line: str) -> str:
        head = self._break()
        self._speaker, self._at_start = "", True
        return f"{head}{line}\n"

    def _break(self) -> str:
        return "" if self._at_start else "\n"


def format_markdown(items: Iterator[SessionItem]) -> Iterator[str]:
    """A transcript as Markdown, a piece at a time. What an agent said is quoted, so that no line of
    it looks like one of the box.
    """
    text, said = SessionText(), ""
    for item in items:
        if item.kind == "update" and item.data.get("sessionUpdate") in _MESSAGES:
            said += text.format(item)
            continue
        yield from _quoted(said)
        said, text = "", SessionText()
        if item.kind == "prompt":
            yield f"## Turn {item.turn}, {clock.to_wire(item.ts)[:19]}\n\n"
        yield from (f"- {line}\n\n" for line in _lines(item))
    yield from _quoted(said)


def format_session(session: Session) -> str:
    """One line of a list."""
    return (
        f"{session.session_id}  {session.state:<9} {clock.to_wire(session.updated_at)[:19]}  "
        f"{escape_invisible(session.agent):<16} {escape_invisible(session.name)}"
        + (f"  {escape_invisible(session.title)}" if session.title else "")
    )


def format_permission(data: Mapping[str, Any]) -> str:
    """A question of the agent, with its answers."""
    options = ", ".join(
        f"{_shown(option.get('option_id'))} ({_shown(option.get('name'))})"
        for option in _objects(data.get("options"))
    )
    return (
        f"the agent asks [{_shown(data.get('permission_id'))}]: "
        f'"{_shown(data.get("title"))}"; answers: {options}'
    )


def _quoted(said: str) -> Iterator[str]:
    if said:
        yield "".join(f"> {line}\n" for line in said.splitlines()) + "\n"


def _lines(item: SessionItem) -> Iterator[str]:
    data = item.data
    if item.dropped:
        yield f"({item.kind}: no longer stored, SHA-256 {escape_invisible(item.digest)})"
    elif item.kind == "prompt":
        blocks = data.get("prompt")
        text = blocks if isinstance(blocks, str) else " ".join(map(_block_text, _objects(blocks)))
        yield f"prompt: {escape_invisible(text)}"
    elif item.kind == "stop":
        yield f"end of turn {item.turn}: {_shown(data.get('stop_reason'))}"
    elif item.kind == "permission":
        yield format_permission(data)
    elif item.kind == "decision":
        answer = _shown(data.get("option_id") or "cancelled")
        yield f"answered [{_shown(data.get('permission_id'))}]: {answer}"
    elif item.kind == "state":
        reason = _shown(data.get("reason") or "")
        yield f"session is {_shown(data.get('state'))}" + (f": {reason}" if reason else "")
    elif item.kind == "notice":
        yield f"agentbox: {_shown(data.get('text'))}"
    else:
        yield from _update_lines(data)


def _update_lines(update: Mapping[str, Any]) -> Iterator[str]:
    kind = _shown(update.get("sessionUpdate", "update"))
    if kind in ("tool_call", "tool_call_update"):
        title = _shown(update.get("title") or update.get("toolCallId") or "")
        status = _shown(update.get("status") or "")
        yield f"tool: {title}" + (f" ({status})" if status else "")
    elif kind == "plan":
        for entry in _objects(update.get("entries")):
            status = _shown(entry.get("status"))
            yield f"plan: [{status}] {_shown(entry.get('content'))}"
    elif kind not in ("available_commands_update", "usage_update", "user_message_chunk"):
        yield kind.replace("_", " ")


def _block_text(block: Any) -> str:
    """A content block of ACP as text."""
    if not isinstance(block, Mapping):
        return ""
    if block.get("type") == "text":
        return str(block.get("text", ""))
    return f"[{block.get('type')}{': ' + str(block['uri']) if 'uri' in block else ''}]"


def _shown(value: Any) -> str:
    return escape_invisible(str(value))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return (
        [one for one in value if isinstance(one, Mapping)]
        if isinstance(value, (list, tuple))
        else []
    )

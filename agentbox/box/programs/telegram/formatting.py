"""Formats journal events as lines of a chat: plain text without markup, so that no agent can forge
any.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentbox.box.programs.telegram.chat_sender import MAX_LENGTH
from agentbox.core.visible_text import is_visible

_MAX_TEXT = 300  # characters of the text of an event


def format_event(event: Mapping[str, Any]) -> str:
    """`12:00:01 builder exited: code 1`. Control characters become spaces: an event is one line."""
    data = event.get("data") or {}
    subject = data.get("name") or event.get("agent_id") or event.get("source") or "?"
    action = str(event["type"]).removeprefix("agent.").replace(".", " ")
    text = f"{str(event['ts'])[11:19]} {subject} {action}{_format_details(data)}"
    return "".join(letter if is_visible(letter) else " " for letter in text)


def _format_details(data: Mapping[str, Any]) -> str:
    ended = data.get("exit") or {}
    if ended:
        reason = (
            f"code {ended['code']}"
            if ended.get("code") is not None
            else ended.get("signal") or ended.get("reason")
        )
        return f": {reason}"
    text = data.get("text") or data.get("message") or ""
    return f": {str(text)[:_MAX_TEXT]}" if text else ""


def group_messages(box: str, events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The smallest number of messages for the lines, each starting with the name of the box."""
    head = f"[{box}]"
    message = head
    for entry in map(format_event, events):
        if len(message) + 1 + len(entry) > MAX_LENGTH:
            yield message
            message = head
        message += f"\n{entry}"
    if message != head:
        yield message

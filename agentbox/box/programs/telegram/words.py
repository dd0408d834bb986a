"""Events of the journal as lines of a chat: plain text, no markup, so that no agent can forge any."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentbox.box.programs.telegram.chat import LONGEST
from agentbox.core.visible import is_visible

_SHOWN = 300  # characters of what an event says of itself


def line(event: Mapping[str, Any]) -> str:
    """`12:00:01 builder exited: code 1`. Control characters become spaces: an event is one line."""
    data = event.get("data") or {}
    who = data.get("name") or event.get("agent_id") or event.get("source") or "?"
    what = str(event["type"]).removeprefix("agent.").replace(".", " ")
    said = f"{str(event['ts'])[11:19]} {who} {what}{_ending(data)}"
    return "".join(letter if is_visible(letter) else " " for letter in said)


def _ending(data: Mapping[str, Any]) -> str:
    ended = data.get("exit") or {}
    if ended:
        how = f"code {ended['code']}" if ended.get("code") is not None else ended.get("signal") or ended.get("reason")
        return f": {how}"
    text = data.get("text") or data.get("message") or ""
    return f": {str(text)[:_SHOWN]}" if text else ""


def messages(box: str, events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """As few messages as the lines fit in, each headed by the box's name."""
    head = f"[{box}]"
    held = head
    for row in map(line, events):
        if len(held) + 1 + len(row) > LONGEST:
            yield held
            held = head
        held += f"\n{row}"
    if held != head:
        yield held

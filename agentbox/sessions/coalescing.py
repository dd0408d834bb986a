"""Updates for an editor that reads too slowly: one that follows another of its kind becomes part of
it, so that what waits grows with what is new, and not with how often an agent tells it. The
transcript has each update as the agent made it.
"""

from collections.abc import Mapping
from typing import Any, Final

BEHIND: Final = 256  # messages that wait for an editor before any are joined
_MAX_TEXT: Final = 64 << 10  # characters of a joined message
_CHUNKS: Final = frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})
# The newer one has all that counts, or, for calls of tools, all that has changed since.
_LATEST: Final = frozenset(
    {
        "plan",
        "usage_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "available_commands_update",
    }
)


def joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
    """Parameters of `session/update` that say what both say; None if one message cannot."""
    if {**old, "update": None} != {**new, "update": None}:
        return None
    first, second = old["update"], new["update"]
    kind = first["sessionUpdate"]
    if kind != second["sessionUpdate"]:
        return None
    if kind in _LATEST or (
        kind == "tool_call_update" and first["toolCallId"] == second["toolCallId"]
    ):
        return {**new, "update": {**first, **second}}
    if kind not in _CHUNKS:
        return None
    before, after = first["content"], second["content"]
    texts = before.get("text"), after.get("text")
    if not all(isinstance(text, str) for text in texts):
        return None
    if {**first, "content": None} != {**second, "content": None}:
        return None
    if {**before, "text": None} != {**after, "text": None}:
        return None
    text = f"{texts[0]}{texts[1]}"
    if len(text) > _MAX_TEXT:
        return None
    return {**new, "update": {**second, "content": {**after, "text": text}}}

"""Text of agents where a person reads it: every character visible."""

from agentbox.core.visible_text import escape_invisible


def escape(data: bytes) -> str:
    """One line or several, without a control character that a terminal would obey."""
    return escape_invisible(data.decode(errors="backslashreplace"))

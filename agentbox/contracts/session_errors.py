"""Errors of sessions. Their `code` is also `error.data.kind` of an ACP answer."""

from agentbox.core.slot_errors import AdapterError


class UnknownSession(AdapterError):
    """No session has this id or name."""

    code, status = "unknown-session", 404


class SessionBusy(AdapterError):
    """A turn is under way: a session has one at a time."""

    code, status = "session-busy", 409


class SessionsFull(AdapterError):
    """`acp.max_sessions` are open."""

    code, status = "sessions-full", 429


class AcpTimeout(AdapterError):
    """The agent did not answer in time. `activities`: the last 20 of the session, escaped."""

    code, status, names = "acp-timeout", 504, ("activities",)


class AcpInvalid(AdapterError):
    """The agent sent what is no ACP. `line`: its first 200 bytes, escaped."""

    code, status, names = "acp-invalid", 502, ("line",)


class AgentEnded(AdapterError):
    """The agent's program ended. `stderr`: its last 4 KiB, escaped."""

    code, status, names = "agent-ended", 502, ("stderr",)

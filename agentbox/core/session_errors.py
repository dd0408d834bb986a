"""Errors of sessions. Their code is also `error.data.kind` of an answer over ACP."""

from agentbox.core.adapter_error import AdapterError


class UnknownSession(AdapterError):
    """No session has this id or name."""

    code, status, names = "unknown-session", 404, ("id",)


class SessionBusy(AdapterError):
    """A turn is under way: a session has one at a time."""

    code, status, names = "session-busy", 409, ("id",)


class SessionsFull(AdapterError):
    """`acp.max_sessions` are open."""

    code, status, retryable, names = "sessions-full", 429, True, ("observed", "cap")


class AcpTimeout(AdapterError):
    """The agent did not answer in time. `activities`: the last 20 of the session, escaped."""

    code, status, names = "acp-timeout", 504, ("id", "activities")


class AcpInvalid(AdapterError):
    """The agent sent what is no ACP. `line`: its first 200 bytes, escaped."""

    code, status, names = "acp-invalid", 502, ("id", "line")


class AgentEnded(AdapterError):
    """The agent's program ended. `stderr`: its last 4 KiB, escaped."""

    code, status, names = "agent-ended", 502, ("id", "stderr")

"""The refusals that only the mesh has (problem codes `not-admitted`, `duplicate-instance`, `session-ended`)."""

from agentbox.core.slot_errors import AdapterError


class NotAdmitted(AdapterError):
    """The host does not take this box: another secret, an image or posture that is not on its list, or no host at all."""

    code, status = "not-admitted", 403


class DuplicateInstance(AdapterError):
    """Two boxes run with one instance id: a copied state volume."""

    code, status = "duplicate-instance", 409


class SessionEnded(AdapterError):
    """The session is over. `reason` is one of evicted, expired, superseded, unknown, closed."""

    code, status, names = "session-ended", 410, ("reason",)

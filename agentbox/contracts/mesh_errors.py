"""Errors of the mesh (problem codes `not-admitted`, `duplicate-instance`, `session-ended`)."""

from agentbox.core.slot_errors import AdapterError


class NotAdmitted(AdapterError):
    """The host rejects this box: wrong secret, image or posture not admitted, or not a
    mesh host.
    """

    code, status = "not-admitted", 403


class DuplicateInstance(AdapterError):
    """Two boxes use one instance id: a copied state volume."""

    code, status = "duplicate-instance", 409


class SessionEnded(AdapterError):
    """The session has ended. `reason` is one of evicted, expired, superseded, unknown, closed."""

    code, status, names = "session-ended", 410, ("reason",)

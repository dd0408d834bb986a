"""Redaction in front of the slots: detectors, the walk over a call's arguments, the policy."""

from agentbox.privacy.guard import Cleaned, Guard, Rejected, guard_of

__all__ = ["Cleaned", "Guard", "Rejected", "guard_of"]

"""Errors of a box whose generation is not confirmed."""

from agentbox.core.adapter_error import AdapterError


class Held(AdapterError):
    """The box was started held; it serves reads, and writes once `generation` is confirmed."""

    code, status, retryable, names = "held", 503, True, ("generation",)

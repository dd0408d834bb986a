"""Errors of calls to agent-host."""

from agentbox.core.slot_errors import ValidationError


def invalid(pointer: str, detail: str) -> ValidationError:
    """A ValidationError about one parameter."""
    return ValidationError(
        f"invalid {pointer}: {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )

"""Errors that end a boot."""

from agentbox.core.errors import AgentboxError


class BootError(AgentboxError):
    """A phase failed: `message` is the reason of `BootstrapFailed`, `hint` its fix."""

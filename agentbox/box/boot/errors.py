"""Why a boot ended."""

from agentbox.core.errors import AgentboxError


class BootError(AgentboxError):
    """A phase failed: `message` is the reason of `BootstrapFailed`, `hint` its fix."""

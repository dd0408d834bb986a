"""A value of the plan that a target cannot represent."""

from agentbox.core.errors import AgentboxError, ExitCode


class RenderError(AgentboxError):
    """The message names the program, service or variable, and the key. CLI exit code 2."""

    exit_code = ExitCode.USAGE

"""A value of the plan that a target cannot hold."""

from agentbox.core.errors import AgentboxError, ExitCode


class RenderError(AgentboxError):
    """The sentence names the program, service or variable, and the key. The CLI leaves with code 2."""

    exit_code = ExitCode.USAGE

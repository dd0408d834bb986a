"""E311: an MCP server that cannot be started or called."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import enabled_agents
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E311", "0.1"
TITLE = "MCP server is incomplete"
REASON = """\
A server is started by its command or called at its URL, and one that all agents share has the
branch of none of them. Without it, each call of its tools would fail. So would the calls of an
agent that works in the workspace itself, if the server is to see its branch. What a server asks
goes to the agent whose call it is, and one that all agents share could ask another."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.mcp",
    "agents.*.workspace",
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.transport",
    "mcp.servers.*.command",
    "mcp.servers.*.url",
    "mcp.servers.*.auth",
    "mcp.servers.*.env_var",
    "mcp.servers.*.workspace",
    "mcp.servers.*.instance",
    "mcp.servers.*.elicitation",
)
BAD = """
[mcp.servers.files]
args = ["--root", "/tmp"]
"""
GOOD = """
[mcp.servers.files]
command = ["files-server"]
args = ["--root", "/tmp"]
"""
EACH = "mcp.servers"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per missing key."""
    if not context["mcp.servers.*.enabled"]:
        return
    if context["mcp.servers.*.transport"] == "stdio":
        if not context["mcp.servers.*.command"]:
            yield _missing(context, "command", "is a stdio server and has no command")
        if (
            context["mcp.servers.*.workspace"] != "none"
            and context["mcp.servers.*.instance"] == "shared"
        ):
            yield context.finding(
                "mcp.servers.*.workspace",
                message=f"{context.entry} is shared by all agents, so there is no branch to show",
                remedy=f'Set {context.path("mcp.servers.*.instance")} = "agent", or workspace = '
                '"none".',
            )
        elif context["mcp.servers.*.workspace"] != "none":
            yield from _check_agents(context)
        if context["mcp.servers.*.elicitation"] and context["mcp.servers.*.instance"] == "shared":
            yield context.finding(
                "mcp.servers.*.elicitation",
                message=f"{context.entry} is shared by all agents, so it may ask none of them",
                remedy=f'Set {context.path("mcp.servers.*.instance")} = "agent", or elicitation = '
                "false.",
            )
        return
    if not context["mcp.servers.*.url"]:
        yield _missing(context, "url", "is an http server and has no url")
    if context["mcp.servers.*.auth"] == "bearer" and not context["mcp.servers.*.env_var"]:
        yield _missing(context, "env_var", "sends a bearer token and names no variable with it")


def _check_agents(context: RuleContext) -> Iterator[Finding]:
    """One finding per agent without a branch."""
    server = context.entry.rpartition(".")[2]
    for name in enabled_agents(context):
        key = f"agents.{name}.workspace"
        if server in context[f"agents.{name}.mcp"] and context[key] != "branch":
            yield context.finding(
                key,
                message=f"agents.{name} has no branch to show to {context.entry}",
                remedy=f'Set {key} = "branch", or {context.path("mcp.servers.*.workspace")} = '
                '"none".',
                related=("mcp.servers.*.workspace",),
            )


def _missing(context: RuleContext, name: str, problem: str) -> Finding:
    key = f"mcp.servers.*.{name}"
    return context.finding(
        key, message=f"{context.entry} {problem}", remedy=f"Set {context.path(key)}."
    )

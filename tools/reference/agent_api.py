"""docs/agent-api.md, from the tables of the agent API."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT
from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.hello import CONTRACT_VERSION, METHODS
from agentbox.gateway.agent_api.mcp import VERSIONS, mcp_name
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS, Tool
from agentbox.manifest.tables.limits import LimitsTable

from reference import COMMAND

TARGET: Final = CHECKOUT / "docs/agent-api.md"
# Methods that are not tools: parameters and purpose.
SELF_METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "hello": (
        "-",
        (
            "Name and policy of the agent, its budgets with usage and remainder, what it owns, and "
            "every method."
        ),
    ),
    "tool.list": (
        "-",
        "The tools that the agent's rights may allow, each with the JSON Schema of its arguments.",
    ),
    "tool.invoke": (
        "`name`, `arguments`",
        "Calls a tool by its name (`memory/search`), like the method `memory.search`.",
    ),
    "secret.get": ("`name`", "Returns a secret that the manifest gives to this agent."),
    "approval.request": (
        "`kind`, `value`, `parameters`, `reason`",
        "Requests an approval in advance, valid for one use with exactly these parameters.",
    ),
    "identity.sign": ("-", "Not supported in this release."),
}
_ERRORS: Final = (
    (errors.PARSE_ERROR, "The message is not valid JSON."),
    (errors.INVALID_REQUEST, "It is not valid JSON-RPC 2.0, or too large."),
    (errors.METHOD_NOT_FOUND, "Unknown method."),
    (errors.INVALID_PARAMS, "Invalid arguments."),
    (
        errors.FAILED,
        "The call failed; `data.code` is the error code, as in the problems of the management API.",
    ),
    (errors.DENIED, "A right is missing; `data.rule` names it."),
    (errors.BUSY, "Too many calls, concurrently or per second."),
    (errors.UNAUTHENTICATED, "The token is unknown, or its agent has ended."),
    (errors.UNSUPPORTED, "Not supported in this release."),
)
# Shell commands in the box, and their output; … stands for varying text.
EXAMPLES: Final[tuple[tuple[str, str], ...]] = (
    (
        "agentbox-ctl hello",
        '{"ok": true, "result": {"contracts": {"agent_api": "…"}, "agent": {"id": "…", …}}',
    ),
    (
        (
            "agentbox-ctl memory.store "
            """'{"key": "plan", "value": {"step": 1}, "text": "read the tests first"}'"""
        ),
        '{"ok": true, "result": {…}}',
    ),
    (
        """agentbox-ctl memory.retrieve '{"key": "plan"}'""",
        '{"ok": true, "result": {…"key": "plan", "value": {"step": 1}, …}}',
    ),
    (
        """echo '{"title": "look into it"}' | agentbox-ctl bead.create -""",
        '{"ok": true, "result": {"title": "look into it", …"id": "…", "kind": "epic", …}}',
    ),
    (
        """agentbox-ctl pod.write '{"path": "notes/today", "content": "done"}'""",
        '{"ok": true, "result": {"created": true, "etag": "…"}}',
    ),
    (
        """agentbox-ctl pod.read '{"path": "notes/today"}'""",
        (
            '{"ok": true, "result": {"content": "done", '
            '"content_type": "text/plain; charset=utf-8", "etag": "…"}}'
        ),
    ),
    (
        """agentbox-ctl event.append '{"type": "note.made", "data": {"n": 1}}'""",
        '{"ok": true, "result": {…}}',
    ),
    (
        (
            "agentbox-ctl tool.invoke "
            """'{"name": "pod/delete", "arguments": {"path": "notes/today"}}'"""
        ),
        '{"ok": true, "result": null}',
    ),
    (
        """agentbox-ctl secret.get '{"name": "SOMEBODY_ELSES"}'""",
        '{"ok": false, "error": {"code": "permission-denied", "message": "…", "data": {…}}}',
    ),
)
_INTRO: Final = f"""# Agent API

<!-- Generated from agentbox/gateway/agent_api/ by `{COMMAND}`. Do not edit. -->

The API of a box for its agents, at the only address that they reach: `$AGENTBOX_URL`, with
`Authorization: Bearer $AGENTBOX_TOKEN`. JSON-RPC 2.0 at `/rpc`, over HTTP (one message or a batch
per body) and WebSocket; the tools also by the Model Context Protocol at `/mcp`
({", ".join(VERSIONS)}).
The contract is version {CONTRACT_VERSION}. A message has at most `limits.frame` bytes
({int(LimitsTable.frame):,}), a call takes at most `limits.tool_timeout_seconds`. In Python:
`agentbox.client.AgentApiClient` and `AsyncAgentApiClient`.

Rights decide: a tool needs one of scope `tool`; `agent.spawn`, `agent.send` and so on need one of
scope `agent`. In addition, an agent reaches only its own data: beads that it created or was
assigned and their children, pods below `state/<id>/`, memory in the namespace `state.<id>`, where
`<id>` is the state of its run (`state` of `hello`), its own events, and the agents that it started.

## From a shell
`agentbox-ctl METHOD [PARAMS | -]` makes one call and prints one line; exit 0, 1 for an error, 2 for
invalid arguments. `…` stands for varying text.
```
"""


def page() -> str:
    """Return the page."""
    return "\n".join(
        (
            _INTRO + "".join(f"$ {line}\n{output}\n" for line, output in EXAMPLES) + "```\n",
            *_section("Methods of the agent itself", ("Method", "Takes", "What"), _self_methods()),
            *_section("Tools", ("Method", "MCP tool", "Takes", "What"), map(_tool, TOOLS)),
            *_section(
                "Agents that it starts",
                ("Method", "MCP tool", "Takes", "What"),
                map(_tool, AGENT_TOOLS),
            ),
            *_section(
                "Errors", ("Code", "Means"), ((f"`{number}`", text) for number, text in _ERRORS)
            ),
        )
    )


def _section(title: str, heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}"
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _self_methods() -> Iterator[tuple[str, ...]]:
    return ((f"`{name}`", *SELF_METHODS[name]) for name in METHODS if name in SELF_METHODS)


def _tool(tool: Tool) -> tuple[str, ...]:
    """Return a tool's row; required arguments are bold."""
    required = {*tool.path, *tool.required}
    arguments = (
        f"**`{name}`**" if name in required else f"`{name}`"
        for name in sorted(tool.arguments, key=lambda one: one not in required)
    )
    return (
        f"`{tool.method}`",
        f"`{mcp_name(tool)}`",
        ", ".join(arguments) or "-",
        tool.summary.replace("<", r"\<"),
    )


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    return {TARGET: page()}

"""docs/door.md, from the tables of the door. `python -m agentbox.host.reference.agent_api` writes it."""

from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.core.paths import CHECKOUT
from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.custom_tools import DEFAULT_FRAME
from agentbox.gateway.agent_api.hello import CONTRACT_VERSION, METHODS
from agentbox.gateway.agent_api.mcp import VERSIONS, mcp_name
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS, Tool

TARGET: Final = CHECKOUT / "docs/door.md"
COMMAND: Final = "python -m agentbox.host.reference.agent_api"
# Methods that are no tools: what each takes, and what it is for.
SELF_METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "hello": (
        "-",
        "Who the agent is, its own policy, its budgets with what is used and left, what is its own, and every method.",
    ),
    "tool.list": (
        "-",
        "The tools that some right of the agent may allow, each with the JSON Schema of its arguments.",
    ),
    "tool.invoke": (
        "`name`, `arguments`",
        "A tool by its name (`memory/search`): the same as the method `memory.search`.",
    ),
    "secret.get": ("`name`", "A secret that the manifest gives to this agent."),
    "approval.request": (
        "`kind`, `value`, `parameters`, `reason`",
        "Asks ahead for an action that waits for an approval; good for one use of exactly that.",
    ),
    "identity.sign": ("-", "Not in this release."),
}
_ERRORS: Final = (
    (errors.PARSE_ERROR, "The message is no JSON."),
    (errors.INVALID_REQUEST, "It is no JSON-RPC 2.0, or too large."),
    (errors.METHOD_NOT_FOUND, "There is no such method."),
    (errors.INVALID_PARAMS, "The arguments do not fit."),
    (errors.FAILED, "The call failed; `data.code` says how, as in the API's problems."),
    (errors.DENIED, "A right is not held; `data.rule` names it."),
    (errors.BUSY, "Too many calls at once or a second."),
    (errors.UNAUTHENTICATED, "The token is unknown, or its agent has ended."),
    (errors.UNSUPPORTED, "This release cannot."),
)
# Lines for a shell in the box, and what they print; … stands for what differs from run to run.
EXAMPLES: Final[tuple[tuple[str, str], ...]] = (
    (
        "agentbox-ctl hello",
        '{"ok": true, "result": {"contracts": {"door": "…"}, "agent": {"id": "…", …}}',
    ),
    (
        """agentbox-ctl memory.store '{"key": "plan", "value": {"step": 1}, "text": "read the tests first"}'""",
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
        '{"ok": true, "result": {"content": "done", "content_type": "text/plain; charset=utf-8", "etag": "…"}}',
    ),
    (
        """agentbox-ctl event.append '{"type": "note.made", "data": {"n": 1}}'""",
        '{"ok": true, "result": {…}}',
    ),
    (
        """agentbox-ctl tool.invoke '{"name": "pod/delete", "arguments": {"path": "notes/today"}}'""",
        '{"ok": true, "result": null}',
    ),
    (
        """agentbox-ctl secret.get '{"name": "SOMEBODY_ELSES"}'""",
        '{"ok": false, "error": {"code": "permission-denied", "message": "…", "data": {…}}}',
    ),
)
_INTRO: Final = f"""# The door

<!-- Generated from agentbox/gateway/agent_api/ by `{COMMAND}`. Do not edit. -->

What an agent may ask of its box, at the only address that it reaches: `$AGENTBOX_URL`, with `Authorization: Bearer $AGENTBOX_TOKEN`.
JSON-RPC 2.0 at `/rpc`, over HTTP (one message or a batch a body) and WebSocket; the tools also by the Model Context Protocol
({", ".join(VERSIONS)}) at `/mcp`. The contract is version {CONTRACT_VERSION}. A message has at most `limits.frame` bytes ({DEFAULT_FRAME:,}),
a call `limits.tool_timeout_seconds`. In Python: `agentbox.client.Door` and `AsyncDoor`.

Rights decide: a tool needs one of scope `tool`, `agent.spawn`, `agent.send` and so on one of scope `agent`. Whatever they say, an agent reaches
only what is its own: beads that it made or was given and their children, pods below `state/<id>/`, memory in the
namespace `state.<id>`, where `<id>` is the state of its run (`state` of `hello`), its own events, and the agents that it started.

## From a shell
`agentbox-ctl METHOD [PARAMS | -]` makes one call and prints one line; exit 0, 1 for an error, 2 for wrong words. `…` stands for what differs.
```
"""


def page() -> str:
    """The whole page."""
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
    """Arguments with their kinds; those that must be given in bold."""
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


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")

"""[mcp]: servers of the Model Context Protocol that the box runs or calls for its agents."""

from collections.abc import Mapping
from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import ENABLED, Not, entries, key, table
from agentbox.manifest.named_types import HeaderName, HeaderValue
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.types import (
    Argument,
    Env,
    Glob,
    HttpUrl,
    Name,
    Size,
    Variable,
)

_STDIO = {".enabled": True, ".transport": "stdio"}
_HTTP = {".enabled": True, ".transport": "http"}


@frozen
class McpHeaderTable:
    """One header of each request to an http server: a value that everybody may know, or that of a
    secret.
    """

    value: HeaderValue = key("", "live", doc="The value, if it is not a secret.")
    env_var: Env = key("", "recreate", doc="Variable that holds the value.")


@frozen
class McpServerTable:
    """One server. A stdio server runs in a sandbox of its own; an http server is called through the
    proxy. Agents see neither command, URL nor secret.
    """

    enabled: bool = key(True, "live", doc="Agents may use it.")
    transport: Literal["stdio", "http"] = key(
        "stdio", "live", doc="stdio: a program of this box; http: a server elsewhere.", when=ENABLED
    )
    command: tuple[Argument, ...] = key(
        (), "live", doc="Program and first arguments; no shell.", when=_STDIO
    )
    args: tuple[Argument, ...] = key((), "live", doc="Further arguments.", when=_STDIO)
    env: Annotated[tuple[Variable, ...], Unique()] = key(
        (), "recreate", doc="Variables passed through.", when=_STDIO
    )
    secrets: Annotated[tuple[Variable, ...], Unique()] = key(
        (),
        "recreate",
        doc="Secrets handed over as files in its private temp directory.",
        when=_STDIO,
    )
    profile: Name = key("service", "live", doc="Built-in profile or policy name.", when=_STDIO)
    workspace: Literal["none", "read", "branch"] = key(
        "none",
        "live",
        doc="What it sees of the calling agent's branch: nothing, read, or read and write. The "
        'latter two need `instance = "agent"`.',
        when=_STDIO,
    )
    instance: Literal["agent", "shared"] = key(
        "agent",
        "live",
        doc="agent = one process for each agent; shared = one for all of them.",
        when=_STDIO,
    )
    idle_seconds: Annotated[int, Range(10, 86_400)] = key(
        300, "live", doc="It is ended after so long without a call.", when=_STDIO
    )
    limits: LimitsTable = table(
        LimitsTable,
        doc="Limits of this server. An absent key takes the value of [limits].",
        when=_STDIO,
        inherits="limits",
    )
    url: HttpUrl = key("", "live", doc="Its endpoint (streamable HTTP).", when=_HTTP)
    auth: Literal["none", "bearer"] = key(
        "none",
        "live",
        doc="bearer: `Authorization: Bearer` with the value of `env_var`.",
        when=_HTTP,
    )
    env_var: Env = key(
        "",
        "recreate",
        doc="Variable that holds the credential.",
        when={**_HTTP, ".auth": Not(("none",))},
    )
    headers: Mapping[HeaderName, McpHeaderTable] = entries(
        "Further headers of each request, by name (rule E313).", when=_HTTP
    )
    tools: Annotated[tuple[Glob, ...], Unique()] = key(
        ("*",), "live", doc="Tools that are offered, by name or glob.", when=ENABLED
    )
    pin: Literal["locked", "first-use"] = key(
        "locked",
        "live",
        doc="locked = a tool is offered as agentbox.lock has it (`agentbox mcp pin`); first-use = "
        "as it was first seen.",
        when=ENABLED,
    )
    call_seconds: Annotated[int, Range(1, 3600)] = key(60, "live", doc="One call.", when=ENABLED)
    max_result: Size = key(Size("1MiB"), "live", doc="The result of one call.", when=ENABLED)
    elicitation: bool = key(
        False, "live", doc="The server may ask the user for input.", when=ENABLED
    )
    sampling: bool = key(
        False, "live", doc="The server may call the calling agent's model.", when=ENABLED
    )


@frozen
class McpTable:
    """Servers of the Model Context Protocol, and bounds of all of them."""

    max_servers: Annotated[int, Range(0, 256)] = key(
        32, "live", doc="Processes of stdio servers at the same time."
    )
    max_tools: Annotated[int, Range(1, 1024)] = key(
        256, "live", doc="Tools of servers that one agent is offered."
    )
    description: Size = key(Size("2KiB"), "live", doc="The description of one tool.")
    servers: Mapping[str, McpServerTable] = entries(
        "The servers, by name. `agents.<name>.mcp` offers them to agents."
    )

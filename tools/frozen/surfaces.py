"""What is called from outside: HTTP, the RPC of agent-host, the agent API with its tools, the
slots, the command line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from frozen import code, operations, sources
from frozen.records import Place, Records

_PROSE: Final = frozenset(
    {"description", "title", "summary", "examples", "$comment", "markdownDescription"}
)
_USUAL: Final = frozenset({"X-Request-Id", "application/json"})  # of nearly every answer


def http_places() -> Iterator[Place]:
    """Every record that is a body of HTTP."""
    yield "HTTP problem", sources.HTTP_RECORDS["Problem"]
    for route in sources.ROUTES:
        for part, name in _bodies(route):
            if name in sources.HTTP_RECORDS:
                yield f"HTTP {route.name} {part}", sources.HTTP_RECORDS[name]


def http(records: Records) -> dict[str, str]:
    """Every operation: method and path, scope, statuses, what it takes and answers."""
    found: dict[str, str] = {}
    for route in sources.ROUTES:
        found[route.name] = (
            f"{route.method} {route.template}: {', '.join(map(str, route.statuses))}"
        )
        found[f"{route.name} scope"] = ", ".join(route.scope) or "public"
        found.update({f"{route.name} form": form for form in _form(route)})
        for part, name in _bodies(route):
            kind = sources.HTTP_RECORDS.get(name)
            found[f"{route.name} {part}"] = name if kind is None else records.text(kind)
        found.update(_described(route))
    return found | {f"scope {scope}": "" for scope in sources.SCOPES}


def agent_rpc() -> dict[str, str]:
    """Methods of agent-host with the members of `params` that each reads, and those of the answer
    that no record describes: from the table, or from the code of those written by hand."""
    found: dict[str, str] = {}
    for method in operations.METHODS:
        takes = (*method.members, *method.operation.caller)
        found.update(_rpc(method.name, takes, ("items",) if method.has_items else ()))
    for name, by_hand in sources.AGENT_RPC.items():
        found.update(_rpc(name, code.arguments(by_hand), code.answered(by_hand)))
    return found


def agent_api() -> dict[str, str]:
    """Methods of the agent API, tools of MCP and their arguments, and numbers of errors."""
    found = dict.fromkeys(sources.hello.METHODS, "")
    for tool in (*sources.tools.TOOLS, *sources.tools.AGENT_TOOLS):
        found[tool.method] = f"MCP {sources.mcp_name(tool)}"
        needed = tool.schema["required"]
        for name, schema in tool.arguments.items():
            found[f"{tool.method} takes {name}{'' if name in needed else '?'}"] = plain(schema)
    numbers = {value for value in vars(sources.agent_api_errors).values() if isinstance(value, int)}
    found.update({f"error {number}": "" for number in numbers})
    found["contract version"] = sources.hello.CONTRACT_VERSION
    found["versions of MCP"] = ", ".join(sources.MCP_VERSIONS)
    return found


_KINDS: Mapping[str, str] = {"stream": "read", "socket": "write"}
_SCOPES = {("orchestrator", "write"): "agents:write"}


def slots() -> dict[str, str]:
    """Implementations of each slot, and its methods: names in metrics, traces and the journal."""
    found = {f"orchestrator capability {name}": "" for name in sources.AGENT_HOST_CAPABILITIES}
    for slot, impl in sources.registry.REGISTRY:
        kind = sources.registry.resolve(slot, impl)
        found[f"{slot} use {impl}"] = f"contract {kind.contract_version}"
        found.update({f"{slot} capability {name}": "" for name in kind.capabilities})
    for name, specs in sources.slot_methods.METHODS.items():
        for spec in specs:
            verb = _KINDS.get(spec.kind, str(spec.kind))
            scope = spec.scope[0] if spec.scope else _SCOPES.get((name, verb), f"{name}:{verb}")
            found[f"{name}.{spec.name}"] = f"{verb}, {scope}"
    return found


def command_line() -> dict[str, str]:
    """Every verb with its arguments and options."""
    context = click.Context(sources.cli, info_name="agentbox")
    return dict(_commands("agentbox", sources.cli, context))


def plain(schema: Mapping[str, Any]) -> str:
    """A JSON Schema without its prose, on one line."""
    return json.dumps(_without_prose(schema), sort_keys=True, ensure_ascii=False)


def _rpc(name: str, takes: Iterable[str], answers: Iterable[str]) -> dict[str, str]:
    return {
        name: "",
        **{f"{name} takes {member}": "" for member in takes},
        **{f"{name} answers {member}": "" for member in answers},
    }


def _bodies(route: Any) -> Iterator[tuple[str, str]]:
    rows = (("request", route.request), ("response", route.response), ("last", route.last))
    return ((part, name) for part, name in rows if name)


def _form(route: Any) -> Iterator[str]:
    """Nothing for JSON on the listener of the API without a bound of its own."""
    kind = "socket" if route.socket else "stream" if route.stream else route.media
    form = f"{kind}, body {route.body_limit or 'as usual'}, listener {route.listener}"
    if form != "json, body as usual, listener api":
        yield form


def _described(route: Any) -> Iterator[tuple[str, str]]:
    """Parameters and headers of the answer, from the published document."""
    operation = sources.openapi()["paths"].get(route.template, {}).get(route.method.lower(), {})
    for one in operation.get("parameters", ()):
        schema = one.get("schema") or one["content"]["application/json"]["schema"]
        yield (
            f"{route.name} {one['in']} {one['name']}{'' if one['required'] else '?'}",
            plain(schema),
        )
    for status, answer in operation.get("responses", {}).items():
        for header in sorted({*answer.get("headers", ())} - _USUAL):
            yield f"{route.name} {status} header {header}", ""
        for media in sorted({*answer.get("content", ())} - _USUAL):
            yield f"{route.name} {status} type {media}", ""


def _commands(
    name: str, command: click.Command, context: click.Context
) -> Iterator[tuple[str, str]]:
    yield name, ""
    for param in command.params:
        spelt = (
            ", ".join((*param.opts, *param.secondary_opts))
            if isinstance(param, click.Option)
            else param.human_readable_name
        )
        yield f"{name} {spelt}", _parameter(param)
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            below = command.get_command(context, verb)
            assert below is not None
            yield from _commands(f"{name} {verb}", below, context)


def _parameter(param: click.Parameter) -> str:
    choices = param.type.choices if isinstance(param.type, click.Choice) else ()
    parts = (
        "flag" if getattr(param, "is_flag", False) else param.type.name,
        " | ".join(map(str, choices)),
        "required" if param.required else "",
        "repeated" if getattr(param, "multiple", False) or param.nargs == -1 else "",
        f"variable {param.envvar}" if param.envvar else "",
    )
    return ", ".join(part for part in parts if part)


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {name: _without_prose(value) for name, value in schema.items() if name not in _PROSE}
    return schema

"""docs/api.md and tests/golden/openapi.json, from the route table."""

import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from agentbox.api.openapi import document
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route
from agentbox.core.paths import CHECKOUT

from reference import COMMAND

GOLDEN = CHECKOUT / "tests/golden/openapi.json"
PAGE = CHECKOUT / "docs/api.md"
_TITLES = {
    "probes": "Probes",
    "box": "The box",
    "beads": "Beads",
    "pods": "Pods",
    "memory": "Memory",
    "events": "Events",
    "agents": "Agents",
    "tasks": "Tasks",
    "reviews": "Reviews",
    "approvals": "Approvals",
    "states": "States",
    "usage": "Usage",
    "skills": "Skills",
    "sandboxes": "Sandboxes",
    "mcp": "MCP servers",
    "sandbox_files": "Files of sandboxes",
    "sessions": "Sessions (ACP)",
    "tokens": "Tokens",
    "users": "Users",
    "logins": "Sessions of people",
    "generation": "The generation that runs",
    "backups": "Backups",
    "mesh": "Mesh",
}
_HEAD = f"""# Management API

Generated from `agentbox.contracts.routes.registry.ROUTES` by `{COMMAND}`. Do not edit.

The API listens on `api.port`, metrics on `observability.metrics_port`. A request carries
`Authorization: Bearer <token>` where a scope is named; `admin` includes every scope except `core`,
and except `mesh:session`, which is that of a session's token. Bodies and responses are JSON records
(`/openapi.json` has their schemas); errors are `application/problem+json` (RFC 9457) with a `code`.
Unknown members and query parameters are rejected. Streams are server-sent events: `Last-Event-ID`
resumes them without gap or repetition.
"""


def outputs() -> Mapping[Path, str]:
    """Return every generated file and its text."""
    return {GOLDEN: golden(document()), PAGE: page()}


def golden(openapi: Mapping[str, Any]) -> str:
    """The OpenAPI document as JSON with a line for each operation and each component."""
    members = []
    for name, value in sorted(openapi.items()):
        match name:
            case "paths":
                text = _block(
                    (path, _block(((verb, _json(row)) for verb, row in sorted(rows.items())), 2))
                    for path, rows in sorted(value.items())
                )
            case "components":
                text = _block(
                    (kind, _block(((key, _json(row)) for key, row in sorted(rows.items())), 2))
                    for kind, rows in sorted(value.items())
                )
            case _:
                text = _json(value)
        members.append((name, text))
    return _block(members, 0) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _block(members: Iterable[tuple[str, str]], depth: int = 1) -> str:
    indent = " " * (depth + 1)
    lines = ",\n".join(f"{indent}{_json(name)}: {text}" for name, text in members)
    return f"{{\n{lines}\n{' ' * depth}}}"


def page() -> str:
    """Return the reference page."""
    parts = [_HEAD]
    for resource, rows in groupby(ROUTES, key=lambda route: route.handler.partition(".")[0]):
        parts.append(_table(_TITLES[resource], rows))
    return "\n".join(parts)


def _table(title: str, rows: Iterable[Route]) -> str:
    lines = [
        f"## {title}",
        "",
        "| Route | Scope | Takes | Answers | What |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{route.method} {route.template}` | {', '.join(route.scope) or 'public'} | "
        f"{_request_cell(route)} "
        f"| {_response_cell(route)} | {route.summary} |"
        for route in rows
    ]
    return "\n".join([*lines, ""])


def _request_cell(route: Route) -> str:
    query = ", ".join(f"`?{name}`" for name in route.query)
    return (
        " ".join(part for part in (f"`{route.request}`" if route.request else "", query) if part)
        or "-"
    )


def _response_cell(route: Route) -> str:
    codes = ", ".join(map(str, route.statuses))
    prefix = "events of " if route.stream else ""
    last = f", then `{route.last}`" if route.last else ""
    return f"{codes} {prefix}`{route.response}`{last}" if route.response else codes

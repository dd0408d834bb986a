"""Writes the modules of `agentbox/client/async_client/` that follow from the tables of operations:
one class per resource, one method per operation. `tools/sync_client.py` writes the synchronous ones
from them. Run it after a change of `agentbox/contracts`; tests/unit/client/test_request_lines.py
fails until then.

Records are imported in the methods, so that a command imports those that it receives and no others.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from agentbox.contracts.routes.resource import Resource
from agentbox.core.paths import CHECKOUT

from operation_methods import Imports, Method

TARGET: Final = CHECKOUT / "agentbox/client/async_client"
# Module of `contracts.operations` -> property of the client, and its text. `pods` is by hand.
RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "beads": ("Beads", "Work items with leases."),
    "memory": ("Memory", "Searchable entries in namespaces."),
    "events": ("Events", "The event journal."),
    "agents": ("Agents", "Agents of a box. A spec is an AgentSpec, or its JSON."),
    "tokens": ("Tokens", "Named tokens."),
    "users": ("Users", "People who operate the box."),
    "logins": ("Logins", "Sessions of people."),
    "mesh": ("Mesh", "Boxes joined to this one, and this box's own membership."),
    "reviews": ("Reviews", "Reviews of agents' changes."),
    "approvals": ("Approvals", "Actions of agents that require an approval."),
    "skills": ("Skills", "The skills of the image."),
    "states": ("States", "The memory and pods of runs."),
    "usage": ("Usage", "Tokens and cost of model calls."),
    "sandboxes": ("Sandboxes", "Programs run under one agent's confinement."),
    "sessions": ("Sessions", "Agents that speak the Agent Client Protocol."),
    "mcp": ("Mcp", "MCP servers of the box."),
    "backups": ("Backups", "Snapshots of the box."),
    "generation": ("Generation", "The generation that runs."),
}
_OF_THE_BOX: Final = ("box", "tasks")  # their operations are methods of the client itself
_BY_HAND: Final = (
    ("pods", "Pods", "Named objects."),
    ("sandbox_files", "SandboxFiles", "Files of running sandboxes."),
)
_HELPERS: Final = (
    "decode",
    "decode_event",
    "decode_optional",
    "idempotency_header",
    "wire_form",
    "without_none",
)
_HEAD: Final = "# Written by tools/client_operations.py from agentbox/contracts.\n"


def generate() -> Mapping[Path, str]:
    """The text of each file."""
    files = {TARGET / f"{name}.py": _resource_module(name) for name in RESOURCES}
    files[TARGET / "client.py"] = _client_module()
    return {path: formatted(path, text) for path, text in files.items()}


def _resource_module(name: str) -> str:
    title, text = RESOURCES[name]
    methods = [method for one in _resources(name) for method in _methods(one, is_box=False)]
    body = [
        f"class Async{title}Client:",
        f'    """{text} Raises ApiError, BoxUnreachable."""',
        "    def __init__(self, box: AsyncRequestSender) -> None:",
        "        self._box = box",
        *_texts(methods),
    ]
    requester = "    from agentbox.client.async_client.request_sender import AsyncRequestSender\n"
    return _module(f"{text.partition('.')[0]}.", methods, body, clients=requester)


def _client_module() -> str:
    methods = [
        method
        for name in _OF_THE_BOX
        for one in _resources(name)
        for method in _methods(one, is_box=True)
    ]
    body = [
        "class AsyncBoxClient(AsyncApiCaller):",
        '    """The API of a box. Raises ApiError for an error response, BoxUnreachable without',
        '    one."""',
        *_texts(methods),
    ]
    for name, title, text in (*_BY_HAND, *((name, *rest) for name, rest in RESOURCES.items())):
        module = f"agentbox.client.async_client.{name}"
        body += [
            "    @cached_property",
            f"    def {name}(self) -> Async{title}Client:",
            f'        """{text}"""',
            f"        from {module} import Async{title}Client",
            "",
            f"        return Async{title}Client(self)",
        ]
    clients = "".join(
        f"    from agentbox.client.async_client.{name} import Async{title}Client\n"
        for name, title in (
            *(row[:2] for row in _BY_HAND),
            *((name, rest[0]) for name, rest in RESOURCES.items()),
        )
    )
    return _module(
        "The client of a box. A resource is imported on first use: a command uses only one.",
        methods,
        body,
        imports="from agentbox.client.async_client.api_caller import AsyncApiCaller",
        clients=clients,
    )


def _module(
    text: str,
    methods: Iterable[Method],
    body: list[str],
    *,
    imports: str = "",
    clients: str = "",
) -> str:
    annotations = Imports()
    for method in methods:
        annotations.update(method.imports)
    joined = "\n".join(body)
    typing = annotations.text("    ") + clients
    names = [name for name in ("Any", "TYPE_CHECKING") if name in joined or name in typing]
    names += ["TYPE_CHECKING"] if typing and "TYPE_CHECKING" not in names else []
    abc = [n for n in ("AsyncIterator", "Mapping", "Sequence") if n in joined]
    helpers = [name for name in _HELPERS if f"{name}(" in joined]
    lines = [_HEAD, f'"""{text}"""', "from __future__ import annotations"]
    lines += ["import json"] if "json." in joined else []
    lines += [f"from collections.abc import {', '.join(abc)}"] if abc else []
    lines += (
        ["from contextlib import asynccontextmanager"] if "@asynccontextmanager" in joined else []
    )
    lines += ["from functools import cached_property"] if "@cached_property" in joined else []
    lines += [f"from typing import {', '.join(names)}"] if names else []
    lines += [imports] if imports else []
    lines += [f"from agentbox.client.transport import {', '.join(helpers)}"] if helpers else []
    lines += [f"if TYPE_CHECKING:\n{typing}"] if typing else []
    return "\n".join([*lines, joined, ""])


def _resources(name: str) -> tuple[Resource, ...]:
    found: tuple[Resource, ...] = import_module(f"agentbox.contracts.operations.{name}").RESOURCES
    return found


def _methods(resource: Resource, *, is_box: bool) -> Iterator[Method]:
    for row in resource.operations:
        is_file = resource.signature(row.name).return_annotation is bytes
        if row.http and row.listener == "api" and (row.media == "json" or is_file):
            yield Method(resource, row, is_box=is_box)


def _texts(methods: Iterable[Method]) -> Iterator[str]:
    return (method.text() for method in methods)


def formatted(path: Path, text: str) -> str:
    """The text as the repository has it at that path."""
    for command in (["check", "--fix", "--quiet", "--select=I,F401,UP034"], ["format", "--quiet"]):
        argv = [sys.executable, "-m", "ruff", *command, f"--stdin-filename={path}", "-"]
        text = subprocess.run(
            argv, input=text, capture_output=True, text=True, check=True, cwd=CHECKOUT
        ).stdout
    return text


if __name__ == "__main__":
    for path, text in generate().items():
        path.write_text(text)

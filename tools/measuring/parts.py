"""What single parts of the product are made of: the plan, one operation, HTTP, the client."""

import ast
import re
from typing import Final

from measuring.sources import Module

_OPEN: Final = re.compile(r"Mapping\[str, Any\]")
_ASGI: Final = re.compile(r'"(http|websocket)\.[a-z.]+"|\breceive: |\bstarlette\b')
_HTTP: Final = ("api", "contracts", "gateway", "routes")  # packages; `core/http` serves all of them
_HEARTBEAT: Final = frozenset({"heartbeat", "beads.heartbeat", "bead/heartbeat"})


def open_fields(modules: list[Module]) -> list[str]:
    """Fields of the plan's records whose members are not typed."""
    (plan,) = (module for module in modules if module.name == "agentbox.plan.model")
    return [
        f"{kind.name}.{field.target.id}"
        for kind in plan.tree.body
        if isinstance(kind, ast.ClassDef)
        for field in kind.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and _OPEN.search(ast.unparse(field.annotation))
    ]


def heartbeats(modules: list[Module]) -> list[str]:
    """Files that define the operation: a function, a route, a tool or a body of that name."""
    return [
        module.name
        for module in modules
        if "lease" in module.text and not module.is_generated and _defines_heartbeat(module)
    ]


def http(modules: list[Module]) -> dict[str, int]:
    """Files that speak ASGI, or use the framework that does, and their lines."""
    return {
        module.name: len(module.lines)
        for module in modules
        if module.name.split(".")[1:2]
        and module.name.split(".")[1] in _HTTP
        and _ASGI.search(module.text)
    }


def client(modules: list[Module], *, generated: bool) -> dict[str, int]:
    """Files of the client, `__init__` aside, and their lines: those by hand, or the others."""
    return {
        module.name: len(module.lines)
        for module in modules
        if module.name.startswith("agentbox.client.")
        and not module.is_package
        and module.is_generated == generated
    }


def _defines_heartbeat(module: Module) -> bool:
    if ".mesh" in module.name:
        return False
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "heartbeat")
        or (isinstance(node, ast.ClassDef) and node.name == "HeartbeatBody")
        or (isinstance(node, ast.Constant) and node.value in _HEARTBEAT)
        for node in ast.walk(module.tree)
    )

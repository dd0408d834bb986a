"""The complete route table. Rows are matched in this order, so a fixed path precedes one with a
parameter. A resource is imported when one of its routes is used: a client uses few.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.routes.route import Route
from agentbox.contracts.scopes import SCOPES as SCOPES

# Modules of `agentbox.contracts.operations`; each has `RESOURCES`.
_MODULES: Final = (
    "box",
    "beads",
    "pods",
    "memory",
    "events",
    "agents",
    "tasks",
    "reviews",
    "approvals",
    "states",
    "usage",
    "skills",
    "sandboxes",
    "sessions",
    "mcp",
    "tokens",
    "users",
    "logins",
    "backups",
    "mesh",
    "generation",
)
RESOURCES: tuple[Resource, ...]
ROUTES: tuple[Route, ...]


class _RoutesByName(Mapping[str, Route]):
    """Imports resources in their order until one has the route."""

    def __getitem__(self, name: str) -> Route:
        for module in _MODULES:
            for resource in _resources(module):
                if (route := resource.routes_by_name.get(name)) is not None:
                    return route
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (route.name for route in _all_routes())

    def __len__(self) -> int:
        return len(_all_routes())


BY_NAME: Mapping[str, Route] = _RoutesByName()


@cache
def _resources(module: str) -> tuple[Resource, ...]:
    resources: tuple[Resource, ...] = import_module(
        f"agentbox.contracts.operations.{module}"
    ).RESOURCES
    return resources


@cache
def _all_resources() -> tuple[Resource, ...]:
    return tuple(resource for module in _MODULES for resource in _resources(module))


@cache
def _all_routes() -> tuple[Route, ...]:
    return tuple(route for resource in _all_resources() for route in resource.routes)


def __getattr__(name: str) -> Any:
    if name == "ROUTES":
        return _all_routes()
    if name == "RESOURCES":
        return _all_resources()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

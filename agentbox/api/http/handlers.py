"""Resolves a route's handler name to its function. A module is imported at its first request."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import TypeAlias

from agentbox.api.http.call import Call
from agentbox.api.http.reply import AnyReply

Handler: TypeAlias = Callable[[Call], Awaitable[AnyReply]]


@cache
def resolve_handler(name: str) -> Handler:
    """`beads.claim` is `claim` of `agentbox.api.endpoints.beads`. Raises AttributeError or
    ImportError (a bug).
    """
    module, function = name.split(".")
    handler: Handler = getattr(import_module(f"agentbox.api.endpoints.{module}"), function)
    return handler

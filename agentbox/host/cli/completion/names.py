"""Names that a running box has, for the word before the cursor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.host.cli.listing import PAGE_SIZE

if TYPE_CHECKING:
    from agentbox.client import BoxClient

# Nothing that a shell would read as more than a word, or split: shells insert it as it is.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./@%+,][A-Za-z0-9_./@%+,-]*")
_PREFIX: Final = re.compile(r"[0-9a-f-]{1,36}")

Names = Iterator[str]


def names(client: BoxClient, kind: str, prefix: str) -> list[str]:
    """Names of one page that begin with the prefix. Those with signs that a shell reads are left
    out."""
    return [
        name
        for name in _KINDS[kind](client, prefix)
        if name.startswith(prefix) and _PLAIN.fullmatch(name)
    ]


def _beads(client: BoxClient, prefix: str) -> Names:
    if prefix and not _PREFIX.fullmatch(prefix):
        return iter(())
    query = {"id_prefix": prefix or None, "limit": PAGE_SIZE}
    return _members(client.call("list_beads", query=query), "id")


def _pods(client: BoxClient, prefix: str) -> Names:
    container = prefix[: prefix.rfind("/") + 1]
    page = client.call("read_pod", {"path": container}, query={"limit": PAGE_SIZE})
    return _members(page, "path")


def _keys(client: BoxClient, prefix: str) -> Names:
    query = {"prefix": prefix, "limit": PAGE_SIZE}
    return _members(client.call("list_memory", {"ns": "default"}, query=query), "key")


def _agents(client: BoxClient, _prefix: str) -> Names:
    return (str(agent["handle"]["agent_id"]) for agent in client.call("list_agents")["items"])


def _listed(route: str, member: str) -> Callable[[BoxClient, str], Names]:
    return lambda client, _prefix: _members(client.call(route), member)


def _members(page: Mapping[str, Any], name: str) -> Names:
    return (str(item[name]) for item in page["items"])


_KINDS: Final[Mapping[str, Callable[[BoxClient, str], Names]]] = {
    "beads": _beads,
    "pods": _pods,
    "keys": _keys,
    "agents": _agents,
    "tasks": _listed("list_tasks", "task_id"),
    "reviews": _listed("list_reviews", "agent_id"),
    "approvals": _listed("list_approvals", "id"),
    "sandboxes": _listed("list_sandboxes", "sandbox_id"),
    "tokens": _listed("list_tokens", "name"),
}
KINDS: Final = tuple(_KINDS)

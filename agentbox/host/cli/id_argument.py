"""Ids on the command line: a whole one, or the first 8 or more characters of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from agentbox.core.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.client import BoxClient

MIN_PREFIX: Final = 8  # characters
_WHOLE: Final = 36  # characters of a UUID (RFC 9562)
_PREFIX: Final = re.compile(r"[0-9a-f-]{8,36}")
_PAGE_SIZE: Final = 500


class _Listing(NamedTuple):
    route: str
    id_of: Callable[[Mapping[str, Any]], str]
    verb: str  # which shows the ids


_LISTINGS: Final = {
    "agent": _Listing("list_agents", lambda row: row["handle"]["agent_id"], "agent list"),
    "approval": _Listing("list_approvals", lambda row: row["id"], "approvals list"),
    "review": _Listing("list_reviews", lambda row: row["agent_id"], "review list"),
    "sandbox": _Listing("list_sandboxes", lambda row: row["sandbox_id"], "sandbox list"),
    "task": _Listing("list_tasks", lambda row: row["task_id"], "task list"),
}


def id_argument(kind: str, name: str) -> Callable[[Any], Any]:
    """The decorator of an argument that is the id of an agent, approval, review, sandbox or task.
    A whole id is passed on as it is, without a call.
    """
    return click.argument(name, callback=partial(_complete, kind))


def find_id(client: BoxClient, kind: str, text: str) -> str:
    """The id of that kind that begins with `text`; a text that is not the beginning of one is
    returned as it is. Raises AgentboxError: exit 2 if several ids begin with it, exit 1 if none
    does.
    """
    if len(text) == _WHOLE or not _PREFIX.fullmatch(text):
        return text
    listing = _LISTINGS[kind]
    found = (listing.id_of(row) for row in _rows(client, listing.route))
    matching = list(islice((one for one in found if one.startswith(text)), 2))
    return choose(matching, kind, text, listing.verb)


def choose(matching: list[str], kind: str, text: str, verb: str) -> str:
    """The only one of these ids. Raises AgentboxError as `find_id` does."""
    if not matching:
        raise AgentboxError(
            f"cannot find the {kind} {text}: no id begins with it",
            f"`agentbox {verb}` shows the ids.",
        )
    if len(matching) > 1:
        raise AgentboxError(
            f"cannot choose the {kind}: several ids begin with {text}, among them "
            f"{matching[0]} and {matching[1]}",
            "Give more characters: ids that were made at the same time begin alike.",
            exit_code=ExitCode.USAGE,
        )
    return matching[0]


def _complete(kind: str, context: click.Context, _argument: click.Parameter, text: str) -> str:
    if len(text) == _WHOLE or not _PREFIX.fullmatch(text):
        return text
    with context.obj.client() as client:
        return find_id(client, kind, text)


def _rows(client: BoxClient, route: str) -> Iterator[Mapping[str, Any]]:
    """The rows of all pages; listings without pages have no cursor."""
    paged = route not in ("list_approvals", "list_reviews")
    query: dict[str, Any] = {"limit": _PAGE_SIZE} if paged else {}
    while True:
        answer = client.call(route, query=query)
        yield from answer["items"]
        if not answer.get("next_cursor"):
            return
        query["cursor"] = answer["next_cursor"]

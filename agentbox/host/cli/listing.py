"""What verbs of data share: pages of a listing, ids by prefix, input from stdin, exit codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.id_argument import MIN_PREFIX, choose
from agentbox.host.cli.output import Output

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.host.cli.context import CliContext

PAGE_SIZE = 100
MAX_PAGE = 500  # items of a page with --all
MAX_INPUT = 1 << 20  # bytes of a text that is read from stdin
_PREFIX = re.compile(r"[0-9a-f-]{8,36}")
_CONFLICTS = (409, 412)

Page = Callable[[int, "str | None"], Mapping[str, Any]]  # limit, cursor -> items, next_cursor


def read_page(out: Output, page: Page, *, everything: bool) -> list[Any]:
    """The items of one page of 100, or of all pages. Says on stderr when there are more."""
    items: list[Any] = []
    cursor: str | None = None
    while True:
        answer = page(MAX_PAGE if everything else PAGE_SIZE - len(items), cursor)
        items += answer["items"]
        cursor = answer["next_cursor"]
        if cursor is None:
            return items
        if not everything and len(items) >= PAGE_SIZE:
            out.note(f"agentbox: the first {len(items)}; --all lists the rest too")
            return items


def each_item(page: Page, *, size: int = PAGE_SIZE) -> Iterator[Any]:
    """The items of all pages; a page is read when it is needed."""
    cursor: str | None = None
    while True:
        answer = page(size, cursor)
        yield from answer["items"]
        if (cursor := answer["next_cursor"]) is None:
            return


def listing_of(
    client: BoxClient,
    route: str,
    parameters: Mapping[str, str] | None = None,
    **query: object,
) -> Page:
    """The pages of a listing of the API."""

    def page(limit: int, cursor: str | None) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = client.call(
            route, parameters, query={**query, "limit": limit, "cursor": cursor}
        )
        return answer

    return page


def find_bead_id(client: BoxClient, text: str) -> str:
    """The id that begins with `text`: a whole id, or the first 8 or more characters of one.

    Raises AgentboxError: exit 2 if it is too short or several ids begin with it, exit 1 if none
    does.
    """
    if len(text) == 36:
        return text
    if not _PREFIX.fullmatch(text):
        raise AgentboxError(
            f"cannot find the bead {text!r}: not an id, nor the first {MIN_PREFIX} or more "
            "characters of one",
            "`agentbox bead list` shows the ids.",
            exit_code=ExitCode.USAGE,
        )
    found = client.call("list_beads", query={"id_prefix": text, "limit": 2})["items"]
    return choose([bead["id"] for bead in found], "bead", text, "bead list --all")


def text_or_stdin(value: str | None, name: str) -> str | None:
    """The value of an option; for - all of stdin, without its last line break. Raises AgentboxError
    (exit 2) for more than 1 MiB, or for bytes that are no UTF-8."""
    if value != "-":
        return value
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise AgentboxError(
            f"cannot read {name} from stdin: more than {MAX_INPUT} bytes", exit_code=ExitCode.USAGE
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise AgentboxError(
            f"cannot read {name} from stdin: not UTF-8", exit_code=ExitCode.USAGE
        ) from error


def parse_json(value: str, name: str) -> Any:
    """The value of an option that is JSON. Raises AgentboxError (exit 2)."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise AgentboxError(
            f"cannot read {name}: not JSON ({error})",
            "A text is JSON in quotation marks: '\"text\"'.",
            exit_code=ExitCode.USAGE,
        ) from error


@contextmanager
def open_box(cli: CliContext) -> Iterator[BoxClient]:
    """A client of the running box. A conflict or a precondition that does not hold (409, 412) is
    exit 7, a path or id that no URL can have exit 2."""
    from agentbox.client import ApiError
    from agentbox.contracts.routes.request_line import InvalidUrl

    with cli.client() as client:
        try:
            yield client
        except ApiError as error:
            if error.status not in _CONFLICTS:
                raise
            raise AgentboxError(error.message, error.hint, exit_code=ExitCode.BUSY) from error
        except InvalidUrl as error:
            raise AgentboxError(f"cannot ask the box: {error}", exit_code=ExitCode.USAGE) from error

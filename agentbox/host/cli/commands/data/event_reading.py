"""Reads the journal of a running box through its API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.events import Event

_STATUS_EXPIRED = 410  # the journal no longer stores these records
_MAX_STEP = 10_000  # records that the box scans in one call


def read_newest(
    client: BoxClient, query: Mapping[str, Any], last: int, count: int
) -> list[dict[str, Any]]:
    """The newest `count` matching events up to record `last`, oldest first. Reads backwards in
    growing steps."""
    from agentbox.client import ApiError

    events: list[dict[str, Any]] = []
    step, oldest = count, 0
    while len(events) < count and last >= oldest:
        since = max(oldest - 1, last - step)
        try:
            events = [*_read_between(client, query, since, last), *events]
        except ApiError as error:
            if error.status != _STATUS_EXPIRED:
                raise
            oldest = int(error.problem["oldest"])
        else:
            last, step = since, min(4 * step, _MAX_STEP)
    return events[-count:]


def _read_between(
    client: BoxClient, query: Mapping[str, Any], since: int, last: int
) -> list[dict[str, Any]]:
    """The matching events after `since`, up to `last`."""
    events: list[dict[str, Any]] = []
    while since < last:
        batch = client.call("read_events", query={**query, "since": since, "limit": 1000})
        events += [event for event in batch["events"] if event["seq"] <= last]
        since = batch["next_since"]
    return events


def read_from_box(cli: CliContext, since: int) -> Iterator[Event]:
    """The records after `since`, up to the one that is newest at the start."""
    from agentbox.contracts.events import Event

    with cli.client() as client:
        head = int(client.call("head_event")["seq"])
        while since < head:
            batch = client.call("read_events", query={"since": since, "limit": 1000})
            since = batch["next_since"]
            yield from (Event.from_wire(event) for event in batch["events"] if event["seq"] <= head)

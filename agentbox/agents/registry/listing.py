"""A page of agents."""

import uuid
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from agentbox.adapters.runtime.adapter import Page
from agentbox.agents.errors import invalid
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.contracts.orchestrator import LIMIT, AgentFilter, AgentInfo, AgentSpec
from agentbox.core.records.wire import Record, to_json
from agentbox.core.rpc.messages import LINE_LIMIT

T = TypeVar("T", bound=Record)
_PAGE_BYTES: Final = LINE_LIMIT // 4  # a line longer than LINE_LIMIT would close the connection


def build_page(
    entries: Iterable[AgentRecord], agent_filter: AgentFilter, limit: int, cursor: str | None
) -> Page[AgentInfo]:
    """In order of id, which is the order of creation; shorter if the specs are large. Raises
    ValidationError."""
    matching = (entry for entry in entries if _matches(entry, agent_filter))
    return select_page(matching, AgentRecord.info, limit, cursor)


def select_page(
    entries: Iterable[AgentRecord],
    describe: Callable[[AgentRecord], T],
    limit: int,
    cursor: str | None,
) -> Page[T]:
    """As `build_page`, of what `describe` makes of each agent."""
    if not LIMIT[0] <= limit <= LIMIT[1]:
        raise invalid("/limit", f"must be from {LIMIT[0]} to {LIMIT[1]}")
    after = "" if cursor is None else _check_cursor(cursor)
    following = (entry for entry in entries if entry.agent_id > after)
    selected = sorted(following, key=lambda entry: entry.agent_id)[: limit + 1]
    items: list[T] = []
    size = 0
    for entry in selected[:limit]:
        info = describe(entry)
        size += len(to_json(info, ensure_ascii=True))
        if items and size > _PAGE_BYTES:
            break
        items.append(info)
    next_cursor = selected[len(items) - 1].agent_id if len(items) < len(selected) else None
    return Page(items=tuple(items), next_cursor=next_cursor)


def _matches(entry: AgentRecord, agent_filter: AgentFilter) -> bool:
    spec = entry.spec
    return (
        agent_filter.state in (None, entry.state)
        and agent_filter.name in (None, spec.name)
        and agent_filter.parent_id in (None, spec.parent_id)
        and (agent_filter.label is None or _has_label(spec, agent_filter.label))
    )


def _has_label(spec: AgentSpec, label: str) -> bool:
    name, equals, value = label.partition("=")
    return name in spec.labels and (not equals or spec.labels[name] == value)


def _check_cursor(cursor: str) -> str:
    try:
        return str(uuid.UUID(cursor))
    except ValueError as error:
        raise invalid("/cursor", "is not a cursor of this listing") from error

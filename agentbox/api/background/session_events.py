"""Copies the record of session-host into the journal, each line once."""

import asyncio

from agentbox.adapters.runtime.slots import Slots
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.events import NewEvent
from agentbox.contracts.session_host import SessionHost
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError

_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 1.0
_OF_AGENTS = "session.update"  # agents cause these at will: they fill the agents' part


def journal_session_events(name: str, slots: Slots, host: SessionHost) -> "asyncio.Task[None]":
    """The task; `name` is that of the box."""
    return asyncio.ensure_future(_consume(f"urn:agentbox:box:{name}", slots, host))


async def _consume(source: str, slots: Slots, host: SessionHost) -> None:
    position = 0
    while True:
        try:
            lines = await host.read_record(position, wait_s=_WAIT_SECONDS)
            if lines:
                await _append(source, slots, lines)
                position = lines[-1].seq
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _append(source: str, slots: Slots, lines: tuple[LifecycleRecord, ...]) -> None:
    journal = slots.journal
    refusal = journal.agent_refusal
    accepted = [line for line in lines if refusal is None or line.type != _OF_AGENTS]
    await slots.events.append([_event(line, source) for line in accepted])
    if refusal is not None:
        journal.count_lost(refusal, len(lines) - len(accepted))


def _event(line: LifecycleRecord, source: str) -> NewEvent:
    return NewEvent(
        type=line.type,
        data={**line.data, "at": clock.to_wire(line.at)},
        source=source,
        subject=line.session_id,
        agent_id=line.agent_id or None,
        session_id=line.session_id,
        id=line.id,
    )

"""Consumes the lifecycle record of agent-host."""

import asyncio
from collections.abc import Sequence
from functools import partial

from agentbox.adapters.orchestrator.local_process import connect
from agentbox.contracts.agent_host.lifecycle_record import (
    LifecycleRecord,
    RecordHandler,
    RecordReader,
)
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.records.wire import JsonObj
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import AdapterError

_CONNECT_SECONDS = 10.0
_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 1.0


async def consume_record(paths: Paths, handler: RecordHandler) -> None:
    """Calls `handler` with all entries in order, until cancelled. Entries are acknowledged when it
    returns; if it raises an AdapterError, they are repeated after a second. Reconnects as needed.
    """
    while True:
        try:
            client, _ = await connect(paths, Deadline.after(_CONNECT_SECONDS))
            try:
                await _consume(partial(_request_lines, client), handler)
            finally:
                await client.close()
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def consume_reader(reader: RecordReader, handler: RecordHandler) -> None:
    """As `consume_record`, with a custom reader."""
    while True:
        try:
            await _consume(reader, handler)
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _request_lines(client: RpcClient, after: int, wait: float) -> Sequence[JsonObj]:
    result = await client.call(
        "record.read", {"after": after, "wait_s": wait}, Deadline.after(2 * wait)
    )
    lines: Sequence[JsonObj] = result["items"]
    return lines


async def _consume(reader: RecordReader, handler: RecordHandler) -> None:
    position = 0
    while True:
        lines = tuple(
            LifecycleRecord.from_wire(row) for row in await reader(position, _WAIT_SECONDS)
        )
        if lines:
            await handler(lines)
            position = lines[-1].seq

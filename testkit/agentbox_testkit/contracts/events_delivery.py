"""Shared helpers of the delivery tests: waiting for the sink, and the records that an agentbox sink
has of a box.
"""

import asyncio
import time
from typing import Any

from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.contracts.events import Delivery, Event


async def wait_delivered(adapter: Any, *, seconds: float = 30.0) -> Delivery:
    """Wait until the sink has every record. Raises AssertionError after the timeout."""
    deadline = time.monotonic() + seconds
    while (status := await adapter.delivery()).undelivered:
        if time.monotonic() > deadline:
            raise AssertionError(f"not delivered within {seconds:g} s: {status}")
        await asyncio.sleep(0.02)
    delivery: Delivery = status
    return delivery


async def wait_for_trouble(adapter: Any, *, seconds: float = 30.0) -> Delivery:
    """Wait until the delivery reports trouble. Raises AssertionError after the timeout."""
    deadline = time.monotonic() + seconds
    while not (status := await adapter.delivery()).trouble:
        if time.monotonic() > deadline:
            raise AssertionError(f"no delivery failure within {seconds:g} s: {status}")
        await asyncio.sleep(0.02)
    delivery: Delivery = status
    return delivery


async def box_events(client: AsyncBoxClient, box: str) -> list[Event]:
    """Return the records of that box in the sink's journal, in journal order."""
    events: list[Event] = []
    since, head = -1, 0
    while since < head:
        batch = await client.call("read_events", query={"since": since, "limit": 1000})
        since, head = batch["next_since"], batch["head_seq"]
        events += [
            Event.from_wire(row)
            for row in batch["events"]
            if row.get("origin", {}).get("box") == box
        ]
    return events

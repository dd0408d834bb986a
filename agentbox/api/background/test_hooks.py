"""Test hooks of slots: a test image can delay or prevent opening one."""

import asyncio
from collections.abc import Awaitable, Callable

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.core import clock
from agentbox.core.slot_errors import SlotUnavailable


def slot_open_hook(hooks: FaultHooks) -> Callable[[SlotName], Awaitable[None]]:
    """The hook awaited before a slot opens. Without test hooks it does nothing."""

    async def before_open(slot: SlotName) -> None:
        if slot == hooks.fail_slot:
            now = clock.to_wire(clock.now())
            raise SlotUnavailable("a test hook made it fail", slot=slot, impl="", since=now)
        if (delay := hooks.delay_slot.get(slot)) is not None:
            await asyncio.sleep(delay)

    return before_open

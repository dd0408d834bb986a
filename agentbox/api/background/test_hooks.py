"""Test hooks of slots: a test image can be asked to open one late, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.box.supervision.hooks import Hooks
from agentbox.core import clock
from agentbox.core.slot_errors import SlotUnavailable


def slot_open_hook(hooks: Hooks) -> Callable[[SlotName], Awaitable[None]]:
    """What is awaited before a slot opens. Without hooks (every image but a test image) it does nothing."""

    async def before_open(slot: SlotName) -> None:
        if slot == hooks.fail_slot:
            now = clock.to_wire(clock.now())
            raise SlotUnavailable(
                "it was told to fail by a test hook", slot=slot, impl="", since=now
            )
        if (delay := hooks.delay_slot.get(slot)) is not None:
            await asyncio.sleep(delay)

    return before_open

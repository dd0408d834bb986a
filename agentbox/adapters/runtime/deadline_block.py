"""The deadline of a call of a slot."""

import asyncio
from typing import Any

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterTimeout


class DeadlineBlock:
    """A block that raises AdapterTimeout at its deadline."""

    def __init__(self, slot: SlotName, method: str, deadline: Deadline) -> None:
        self._slot, self._method = slot, method
        self._remaining = deadline.remaining()
        self._timeout = asyncio.timeout(self._remaining)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as timeout:
            raise AdapterTimeout(
                (
                    f"cannot finish {self._slot}.{self._method}: no response within "
                    f"{self._remaining:.1f} s"
                ),
                slot=self._slot,
                method=self._method,
                deadline_ms=round(self._remaining * 1000),
            ) from timeout

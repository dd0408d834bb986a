"""An adapter whose calls fail like those over a faulty connection; for any class, without a
network.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, Final

from agentbox.adapters.runtime.adapter import Adapter
from agentbox.contracts.slot_operations import METHODS
from agentbox.core.slot_errors import AdapterError, AdapterTimeout, BackendError, SlotUnavailable

FAULTS: Final = ("slow", "flaky", "drop", "duplicate", "truncate")
MAX_DELAY: Final = 0.05  # maximum delay of a slow call in seconds
CALLS_PER_ROUND: Final = 25  # calls after which every fault has had its share


class FaultyAdapter:
    """Wraps `adapter`; attributes that are not methods of the slot pass through. `fault_counts`
    counts the faults of each kind.

    slow: executed after a delay. flaky: rejected without effect. drop: executed, reply lost.
    duplicate: executed twice, the first reply returned. truncate: executed, reply broken; a stream
    ends in the middle.
    """

    def __init__(self, adapter: Adapter, seed: int, plan: Mapping[str, float]) -> None:
        """`plan` maps kinds of `FAULTS` to their share of the calls, 0 to 1 in total, rounded to a
        25th: every 25 calls have that many of each kind, in an order that depends on the seed.
        Raises ValueError for another kind, or shares above 1.
        """
        if set(plan) - set(FAULTS) or not 0 <= sum(plan.values()) <= 1:
            raise ValueError(
                f"a plan has shares of {', '.join(FAULTS)} whose sum is at most 1: {dict(plan)}"
            )
        self._adapter, self._random = adapter, random.Random(seed)
        faults = [
            kind for kind, share in plan.items() for _ in range(round(share * CALLS_PER_ROUND))
        ]
        self._kinds = [*faults, *[""] * (CALLS_PER_ROUND - len(faults))]
        self._next: list[str] = []
        self._streams = {spec.name: spec.is_stream for spec in METHODS[adapter.slot]}
        self.fault_counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._adapter, name)
        if name not in self._streams:
            return attribute
        return partial(self._stream if self._streams[name] else self._call, attribute, name)

    async def _call(
        self, method: Callable[..., Any], name: str, /, *args: Any, **kwargs: Any
    ) -> Any:
        match self._fault():
            case "slow":
                await asyncio.sleep(self._random.uniform(0, MAX_DELAY))
            case "flaky":
                raise self._unavailable()
            case "duplicate":
                first = await method(*args, **kwargs)
                await asyncio.gather(method(*args, **kwargs), return_exceptions=True)
                return first
            case "drop":
                await asyncio.gather(method(*args, **kwargs), return_exceptions=True)
                raise AdapterTimeout(
                    f"no reply to {name}", slot=self._adapter.slot, method=name, deadline_ms=0
                )
            case "truncate":
                await asyncio.gather(method(*args, **kwargs), return_exceptions=True)
                detail = f"the reply to {name} broke off"
                raise BackendError(detail, slot=self._adapter.slot, impl=self._adapter.impl)
        return await method(*args, **kwargs)

    async def _stream(
        self, method: Callable[..., Any], _name: str, /, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        fault = self._fault()
        if fault == "flaky":
            raise self._unavailable()
        count = 0
        async for item in method(*args, **kwargs):
            if fault in ("drop", "truncate") and count == 3:
                raise self._unavailable()
            if fault == "slow":
                await asyncio.sleep(self._random.uniform(0, MAX_DELAY / 10))
            yield item
            count += 1

    def _fault(self) -> str:
        if not self._next:
            self._next = self._random.sample(self._kinds, len(self._kinds))
        if kind := self._next.pop():
            self.fault_counts[kind] += 1
        return kind

    def _unavailable(self) -> AdapterError:
        slot, impl = self._adapter.slot, self._adapter.impl
        return SlotUnavailable(f"cannot reach {slot}", slot=slot, impl=impl, since=None)

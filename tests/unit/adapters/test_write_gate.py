"""The gate of writes after errors and cancellation: it is open, and counts nothing twice."""

import asyncio
import contextvars

import pytest

from agentbox.adapters.runtime.write_gate import WriteGate, WritesUnderWay


async def is_idle(gate: WriteGate) -> bool:
    """Whether no call is under way, and the next is admitted."""
    try:
        async with gate.closed(0.0):
            pass
    except WritesUnderWay:
        return False
    await asyncio.wait_for(gate.enter(), 10)
    gate.leave()
    return True


async def test_an_error_in_a_call_ends_it() -> None:
    """As its return does."""
    gate = WriteGate()
    with pytest.raises(ZeroDivisionError):
        await _call(gate, asyncio.Event(), fail=True)
    assert await is_idle(gate)


async def test_a_cancelled_call_ends() -> None:
    """While it works, and while it waits for the gate."""
    gate, never, outside = WriteGate(), asyncio.Event(), contextvars.copy_context()
    working = asyncio.create_task(_call(gate, never))
    await _steps()
    assert not await is_idle(gate)
    working.cancel()
    await asyncio.wait({working})
    async with gate.closed(1):
        waiting = asyncio.create_task(_call(gate, never), context=outside)
        await _steps()
        waiting.cancel()
        await asyncio.wait({waiting})
    assert await is_idle(gate)


async def test_a_failed_block_opens_the_gate() -> None:
    """By an error, and by a cancellation while writes are waited for."""
    gate = WriteGate()
    with pytest.raises(ZeroDivisionError):
        async with gate.closed(1):
            raise ZeroDivisionError
    assert await is_idle(gate)
    await gate.enter()
    closing = asyncio.create_task(_close(gate))
    await _steps()
    closing.cancel()
    await asyncio.wait({closing})
    gate.leave()
    assert await is_idle(gate)


async def test_a_call_that_ends_in_another_context_ends() -> None:
    """As that of a generator which the event loop closes: its mark cannot be reset there, but it is
    under way no more."""
    gate = WriteGate()
    ticket = contextvars.copy_context().run(gate.ticket)
    await ticket.enter()
    with pytest.raises(ValueError, match="different Context"):
        ticket.__exit__()
    assert await is_idle(gate)


async def _call(gate: WriteGate, until: asyncio.Event, *, fail: bool = False) -> None:
    with gate.ticket() as ticket:
        await ticket.enter()
        if fail:
            raise ZeroDivisionError
        await until.wait()


async def _close(gate: WriteGate) -> None:
    async with gate.closed(60):
        pass


async def _steps() -> None:
    """All that can go on without waiting has done so."""
    for _ in range(5):
        await asyncio.sleep(0)

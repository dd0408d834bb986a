"""Batches concurrent equal calls to the server: one statement, one round trip, one commit."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentbox.core.slot_errors import AdapterError, SlotUnavailable

A = TypeVar("A")
R = TypeVar("R")
MAX_BATCH = 8  # calls per statement
_SLOW_SECONDS = 0.1  # a slower batch, for example on a row lock, does not delay the next one
_UNDO_SECONDS = 0.6  # to cancel a statement that all callers have abandoned


@dataclass(eq=False, slots=True)
class _Call(Generic[A, R]):
    request: A
    future: "asyncio.Future[R]"
    single: bool = False
    batch: "_Batch[A, R] | None" = None


@dataclass(eq=False, slots=True)
class _Batch(Generic[A, R]):
    calls: list[_Call[A, R]]
    task: "asyncio.Task[Sequence[R]]"


class CallBatcher(Generic[A, R]):
    """`send` executes several calls at once and returns one result each, or fails without any
    effect: then each call is repeated alone, so that a failing one does not fail the others. A call
    may be executed twice, as with `Postgres.run_repeatable`.
    """

    def __init__(self, send: Callable[[Sequence[A]], Coroutine[Any, Any, Sequence[R]]]) -> None:
        self._send = send
        self._pending: list[_Call[A, R]] = []
        self._current: _Batch[A, R] | None = None
        self._scheduled = False

    async def call(self, request: A) -> R:
        """The result. A statement that all callers have abandoned is cancelled."""
        call: _Call[A, R] = _Call(request, asyncio.get_running_loop().create_future())
        self._pending.append(call)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(
                self._send_next
            )  # after the callers of the last batch have called again
        try:
            return await call.future
        except asyncio.CancelledError:
            batch = call.batch
            if (
                batch is not None
                and not batch.task.done()
                and all(other.future.done() for other in batch.calls)
            ):
                batch.task.cancel()
                await asyncio.wait({batch.task}, timeout=_UNDO_SECONDS)
            raise

    def _send_next(self) -> None:
        """Sends the pending calls, unless a batch was just sent."""
        self._scheduled = False
        self._pending = [call for call in self._pending if not call.future.done()]
        if self._current is not None or not self._pending:
            return
        first, loop = self._pending[0], asyncio.get_running_loop()
        calls = (
            [first]
            if first.single
            else [call for call in self._pending if not call.single][:MAX_BATCH]
        )
        self._pending = [call for call in self._pending if call not in calls]
        batch = self._current = _Batch(
            calls, loop.create_task(self._send([call.request for call in calls]))
        )
        timer = loop.call_later(_SLOW_SECONDS, self._release, batch)
        for call in calls:
            call.batch = batch

        def done(_task: "asyncio.Task[Sequence[R]]") -> None:
            timer.cancel()
            self._resolve(batch)
            self._release(batch)

        batch.task.add_done_callback(done)

    def _release(self, batch: _Batch[A, R]) -> None:
        if self._current is batch:
            self._current = None
        self._send_next()

    def _resolve(self, batch: _Batch[A, R]) -> None:
        error = asyncio.CancelledError() if batch.task.cancelled() else batch.task.exception()
        retry = (
            len(batch.calls) > 1
            and isinstance(error, AdapterError)
            and not isinstance(error, SlotUnavailable)
        )
        for index, call in enumerate(batch.calls):
            if call.future.done():
                continue
            if retry:
                call.single, call.batch = True, None
                self._pending.append(call)
            elif error is None:
                call.future.set_result(batch.task.result()[index])
            elif batch.task.cancelled():
                call.future.cancel()
            else:
                call.future.set_exception(error)

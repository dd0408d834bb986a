"""Calls that arrive while an equal one is under way go to the server together: one statement, one round trip, one commit."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentbox.core.slot_errors import AdapterError, SlotUnavailable

A = TypeVar("A")
R = TypeVar("R")
MOST = 8  # calls of a statement
_SLOW_SECONDS = 0.1  # what takes longer, because a row is locked, keeps the next ones waiting no more
_UNDO_SECONDS = 0.6  # for what every caller gave up to be broken off


@dataclass(eq=False, slots=True)
class _Call(Generic[A, R]):
    asked: A
    answer: "asyncio.Future[R]"
    alone: bool = False
    sent: "_Sent[A, R] | None" = None


@dataclass(eq=False, slots=True)
class _Sent(Generic[A, R]):
    calls: list[_Call[A, R]]
    task: "asyncio.Task[Sequence[R]]"


class Together(Generic[A, R]):
    """`send` makes so many calls at once and returns an answer for each, or fails and has done none of them: then each is made
    again alone, so that one that is refused refuses no other. A call may be made twice, as by `Postgres.repeatable`."""

    def __init__(self, send: Callable[[Sequence[A]], Coroutine[Any, Any, Sequence[R]]]) -> None:
        self._send = send
        self._waiting: list[_Call[A, R]] = []
        self._latest: _Sent[A, R] | None = None
        self._scheduled = False

    async def call(self, asked: A) -> R:
        """The answer. A statement that all its callers gave up is broken off."""
        call: _Call[A, R] = _Call(asked, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._go_on)  # after those who were answered together have asked again
        try:
            return await call.answer
        except asyncio.CancelledError:
            sent = call.sent
            if sent is not None and not sent.task.done() and all(each.answer.done() for each in sent.calls):
                sent.task.cancel()
                await asyncio.wait({sent.task}, timeout=_UNDO_SECONDS)
            raise

    def _go_on(self) -> None:
        """Sends what waits, unless something has just been sent."""
        self._scheduled = False
        self._waiting = [call for call in self._waiting if not call.answer.done()]
        if self._latest is not None or not self._waiting:
            return
        first, loop = self._waiting[0], asyncio.get_running_loop()
        calls = [first] if first.alone else [call for call in self._waiting if not call.alone][:MOST]
        self._waiting = [call for call in self._waiting if call not in calls]
        sent = self._latest = _Sent(calls, loop.create_task(self._send([call.asked for call in calls])))
        timer = loop.call_later(_SLOW_SECONDS, self._after, sent)
        for call in calls:
            call.sent = sent

        def done(_task: "asyncio.Task[Sequence[R]]") -> None:
            timer.cancel()
            self._answer(sent)
            self._after(sent)

        sent.task.add_done_callback(done)

    def _after(self, sent: _Sent[A, R]) -> None:
        if self._latest is sent:
            self._latest = None
        self._go_on()

    def _answer(self, sent: _Sent[A, R]) -> None:
        error = asyncio.CancelledError() if sent.task.cancelled() else sent.task.exception()
        again = len(sent.calls) > 1 and isinstance(error, AdapterError) and not isinstance(error, SlotUnavailable)
        for place, call in enumerate(sent.calls):
            if call.answer.done():
                continue
            if again:
                call.alone, call.sent = True, None
                self._waiting.append(call)
            elif error is None:
                call.answer.set_result(sent.task.result()[place])
            elif sent.task.cancelled():
                call.answer.cancel()
            else:
                call.answer.set_exception(error)

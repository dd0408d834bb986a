"""Calls that last: streams and WebSockets end when their caller may no longer make them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from agentbox.api.auth.authentication import Caller

_CHECK_SECONDS: Final = 30.0  # between checks of what ends by the clock
Renew = Callable[[Caller], Caller | None]


class OpenCalls:
    """`renew` is what a caller may do at present; None if its credential has ended."""

    def __init__(self, renew: Renew) -> None:
        self._renew = renew
        self._open: set[tuple[Caller, tuple[str, ...], asyncio.Event]] = set()

    def check(self) -> None:
        """Ends each call whose caller may no longer make it. To be called after each change of a
        token, a user or a session.
        """
        for caller, scopes, ended in list(self._open):
            if not self._may(caller, scopes):
                ended.set()

    async def run(
        self,
        caller: Caller,
        scopes: Sequence[str],
        call: Awaitable[None],
        abort: Callable[[], Awaitable[None]],
    ) -> None:
        """Runs the call; `abort` runs if it is ended. A caller whose credential lasts as long as
        this program is not followed.
        """
        if not (caller.token_id or caller.login_id):
            await call
            return
        row = (caller, tuple(scopes), asyncio.Event())
        self._open.add(row)
        serving: asyncio.Future[Any] = asyncio.ensure_future(call)
        ending = asyncio.ensure_future(row[2].wait())
        try:
            while not serving.done() and self._may(caller, scopes) and not ending.done():
                await asyncio.wait(
                    {serving, ending},
                    timeout=_CHECK_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if serving.done():
                serving.result()
                return
        finally:
            self._open.discard(row)
            ending.cancel()
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving})
        await abort()

    def _may(self, caller: Caller, scopes: Sequence[str]) -> bool:
        present = self._renew(caller)
        return present is not None and all(present.has_scope(scope) for scope in scopes)

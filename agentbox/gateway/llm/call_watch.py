"""Runs a call of a model until it ends, the agent disconnects, its right is revoked, or it exceeds
its timeout.
"""

import asyncio
from typing import Final

from starlette.types import Receive

from agentbox.gateway.authorizer import AccessDenied, Authorizer
from agentbox.gateway.llm.exchange import Exchange, ModelStreamAborted
from agentbox.gateway.llm.model_request import ModelRequest, ProviderRuntime
from agentbox.gateway.llm.rights import may_use_any_model, may_use_model
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError

_RECHECK_SECONDS: Final = 0.05  # between two checks of changing rights


class CallWatch:
    """Watches one call, whose body has been read: `receive` yields the disconnection only."""

    def __init__(
        self,
        authorizer: Authorizer,
        runtime: ProviderRuntime,
        request: ModelRequest,
        token: str,
        receive: Receive,
    ) -> None:
        self._authorizer, self._runtime, self._request = authorizer, runtime, request
        self._token, self._receive = token, receive

    async def run(self, exchange: Exchange) -> None:
        """Raises what ends the call early: ConnectionError, AccessDenied, ModelGatewayError, or
        ModelStreamAborted once a response has started."""
        work = asyncio.ensure_future(exchange.run())
        watcher = asyncio.ensure_future(self._wait_abort_reason())
        try:
            await asyncio.wait(
                {work, watcher},
                timeout=self._runtime.provider.timeout_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if work.done():
                work.result()
                return
            cause = (
                watcher.result()
                if watcher.done()
                else ModelGatewayError("late", "the call exceeded the provider's timeout_seconds")
            )
            work.cancel()
            await asyncio.wait({work})
            if not work.cancelled() and work.exception() is None:
                return  # it completed while being cancelled
            if exchange.started and not isinstance(cause, ConnectionError):
                raise ModelStreamAborted from cause
            raise cause
        finally:
            for task in (work, watcher):
                task.cancel()
            await asyncio.gather(work, watcher, return_exceptions=True)

    async def _wait_abort_reason(self) -> Exception:
        """Waits for a reason to abort the call."""
        caller, request = self._request.caller, self._request
        disconnect = asyncio.ensure_future(self._wait_disconnect())
        try:
            while True:
                revocation = asyncio.ensure_future(
                    asyncio.shield(self._authorizer.revocation(caller))
                )
                await asyncio.wait({disconnect, revocation}, return_when=asyncio.FIRST_COMPLETED)
                if disconnect.done():
                    revocation.cancel()
                    return ConnectionError()
                try:
                    caller = self._authorizer.identify(self._token)
                except AccessDenied as denied:
                    return denied
                provider = self._runtime.provider
                if not (
                    may_use_model(caller, provider, request.model)
                    if request.model
                    else may_use_any_model(caller, provider)
                ):
                    return AccessDenied("llm:call", "the right to this model was revoked")
                await asyncio.sleep(_RECHECK_SECONDS)
        finally:
            disconnect.cancel()

    async def _wait_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

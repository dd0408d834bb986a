"""The ASGI application below `/llm/<provider>/`."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agentbox.core.records.plain import to_plain
from agentbox.core.slot_errors import AdapterError
from agentbox.gateway.authorizer import AccessDenied, Authorizer
from agentbox.gateway.llm.body_memory import BodyMemory
from agentbox.gateway.llm.call_watch import CallWatch
from agentbox.gateway.llm.concurrency import ConcurrencyLimit
from agentbox.gateway.llm.config import LlmConfig
from agentbox.gateway.llm.exchange import Exchange, ModelStreamAborted
from agentbox.gateway.llm.fair_queue import FairQueue
from agentbox.gateway.llm.gateway_counters import GatewayCounters
from agentbox.gateway.llm.ledger import BudgetLedger
from agentbox.gateway.llm.model_request import ModelRequest, ProviderRuntime
from agentbox.gateway.llm.request import (
    INLINE_BODY,
    build_request,
    declared_size,
    find_token,
    mask_body,
    max_input,
    read_body,
)
from agentbox.gateway.llm.upstream import Upstream
from agentbox.gateway.llm.vendor_protocol import (
    STATUS,
    ModelGatewayError,
    VendorCall,
    VendorProtocol,
)
from agentbox.gateway.llm.vendors.anthropic import ANTHROPIC
from agentbox.gateway.llm.vendors.gemini import GEMINI
from agentbox.gateway.llm.vendors.openai import OPENAI
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.budget_usage import has_money_budget

log = structlog.get_logger()

PREFIX: Final = "/llm/"
_PRUNE_SECONDS: Final = 3600.0
PROTOCOLS: Final[Mapping[str, VendorProtocol]] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
}
_PATH: Final = re.compile(r"/llm/([a-z][a-z0-9-]{0,31})/([A-Za-z0-9._:@/-]{1,300})")
_UNNORMALIZED: Final = re.compile(r"(^|/)\.\.?(/|$)|//")


def llm_app(config: LlmConfig, authorizer: Authorizer) -> "LlmApp":
    """Creates the application; `open` it before the first request and `close` it after the last."""
    return LlmApp(config, authorizer)


class LlmApp:
    """The model gateway application. Used by one event loop."""

    def __init__(self, config: LlmConfig, authorizer: Authorizer) -> None:
        self.gauges = GatewayCounters()
        self.ledger = BudgetLedger(config.state_dir)
        self.cost = config.cost
        self.ledger.refuse_unknown = config.cost.unknown == "refuse"
        self.body_memory = BodyMemory()
        self._config, self._authorizer = config, authorizer
        concurrency = ConcurrencyLimit()
        self.runtimes = {
            name: ProviderRuntime(
                provider,
                PROTOCOLS[provider.kind],
                Upstream(provider, self.gauges, config.outgoing),
                FairQueue(provider.max_concurrent, concurrency),
            )
            for name, provider in config.providers.items()
        }

    async def open(self) -> None:
        """Raises AdapterError if the budgets cannot be read."""
        await self.ledger.open()
        for provider, pattern, agent, cost in await self.ledger.cost_totals():
            self.gauges.cost[provider, pattern, agent] = cost

    async def prune_periodically(self) -> None:
        """Deletes old calls from the record, at once and every hour, until cancelled."""
        while True:
            try:
                await self.ledger.prune(self.cost.keep_days)
            except AdapterError as error:
                log.warning("cannot delete old calls from the record", error=error.message)
            await asyncio.sleep(_PRUNE_SECONDS)

    async def close(self) -> None:
        """Call it once no request is in progress."""
        for runtime in self.runtimes.values():
            await runtime.upstream.close()
        await self.ledger.close()

    def state(self) -> dict[str, Any]:
        """Counters since the start, queue lengths, usage by name, and the budgets of names that
        have called since the start, as plain data."""
        queues = {
            name: [runtime.queue.depth, runtime.queue.running]
            for name, runtime in self.runtimes.items()
        }
        accounts = self.ledger.accounts.values()
        budgets = {
            account.name: to_plain(account.budget)
            for account in accounts
            if account.budget is not None
        }
        usage = {account.name: to_plain(self.ledger.usage(account.name)) for account in accounts}
        return {
            "counts": self.gauges.to_json(),
            "queues": queues,
            "budgets": budgets,
            "spent": usage,
        }

    def reload(self, config: LlmConfig) -> None:
        """Applies the live settings: of existing providers models, prices, concurrency and timeout;
        of [cost] all but the currency."""
        self.cost = config.cost
        self.ledger.refuse_unknown = config.cost.unknown == "refuse"
        for name, runtime in self.runtimes.items():
            if name in config.providers:
                runtime.provider = config.providers[name]
                runtime.queue.slots = runtime.provider.max_concurrent
                runtime.queue.dispatch()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await WebSocketClose(1008, "models are served over HTTP only")(scope, receive, send)
            return
        handler = ModelCallHandler(self, self._config, self._authorizer, scope, receive, send)
        await handler.run()


class ModelCallHandler:
    """Handles one request."""

    def __init__(
        self,
        app: LlmApp,
        config: LlmConfig,
        authorizer: Authorizer,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._app, self._config, self._authorizer = app, config, authorizer
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = {key.lower(): value for key, value in scope["headers"]}
        self._caller: Authorization | None = None
        self._runtime: ProviderRuntime | None = None
        self._exchange: Exchange | None = None

    async def run(self) -> None:
        outcome = "ok"
        try:
            await self._serve()
            if self._exchange is not None and self._exchange.status >= 400:
                outcome = "provider"
        except ModelGatewayError as error:
            outcome = error.rule or error.reason
            await self._send_error(error)
        except AccessDenied as denied:
            outcome = "refused"
            await self._send_error(ModelGatewayError("forbidden", denied.reason, rule=denied.rule))
        except RecursionError:
            outcome = "invalid"
            await self._send_error(ModelGatewayError("invalid", "the body is nested too deeply"))
        except ModelStreamAborted:
            outcome = "cut"
            raise  # the server closes the connection of an incomplete response
        except (ConnectionError, ClientDisconnect):
            outcome = "gone"
        finally:
            if self._runtime is not None and self._caller is not None:
                self._app.gauges.calls[
                    self._runtime.provider.name, self._caller.agent, outcome
                ] += 1

    async def _serve(self) -> None:
        runtime, path = self._find_runtime()
        token = find_token(self._headers, self._scope["query_string"])
        try:
            self._caller = caller = self._authorizer.identify(token)
        except AccessDenied as denied:
            raise ModelGatewayError("token", denied.reason) from None
        call = runtime.protocol.find_call(self._scope["method"], path)
        if call is None:
            operation = f"{self._scope['method']} {path}"
            raise ModelGatewayError(
                "forbidden",
                f"{operation} is not an allowed call",
                rule="llm:path",
                detail=operation[:200],
            )
        with self._app.body_memory.reserve(
            caller.agent_id, declared_size(self._headers) if call.body else 0
        ):
            request = await self._read_request(runtime, caller, call)
            key = self._provider_key(runtime)
            self._exchange = Exchange(
                runtime, self._app.ledger, self._app.gauges, request, key, self._send
            )
            watch = CallWatch(self._authorizer, runtime, request, token, self._receive)
            await watch.run(self._exchange)

    def _find_runtime(self) -> tuple[ProviderRuntime, str]:
        raw = self._scope.get("raw_path") or self._scope["path"].encode()
        match = _PATH.fullmatch(raw.decode("latin-1").partition("?")[0])
        runtime = self._app.runtimes.get(match[1]) if match else None
        if match is None or runtime is None:
            raise ModelGatewayError(
                "missing",
                "unknown provider path: use /llm/<provider>/ followed by the provider's own path",
            )
        self._runtime = runtime
        if _UNNORMALIZED.search(match[2]):
            raise ModelGatewayError("forbidden", "the path is not normalized")
        return runtime, match[2]

    async def _read_request(
        self, runtime: ProviderRuntime, caller: Authorization, call: VendorCall
    ) -> ModelRequest:
        raw = await read_body(Request(self._scope, self._receive))
        request = await build_request(
            self._authorizer,
            caller,
            runtime.provider,
            runtime.protocol,
            call,
            self._scope,
            self._headers,
            raw,
        )
        mask_arguments = (self._config.redactor, runtime.provider, self._app.gauges, request)
        if len(raw) > INLINE_BODY:
            await asyncio.to_thread(mask_body, *mask_arguments)
        else:
            mask_body(*mask_arguments)
        if request.call.counts_input and has_money_budget(caller):
            await self._bound_input(request, len(raw))
        return request

    async def _bound_input(self, request: ModelRequest, length: int) -> None:
        """The bound counts what is sent, whatever the encoding of what was received."""
        if length > INLINE_BODY:
            request.max_input = await asyncio.to_thread(max_input, request)
        else:
            request.max_input = max_input(request)

    def _provider_key(self, runtime: ProviderRuntime) -> str:
        name = runtime.provider.env_var
        key = self._config.key(name) if name else ""
        if key is None:
            raise ModelGatewayError(
                "unavailable",
                f"the provider {runtime.provider.name} has no key: the secret {name} is not set",
            )
        return key

    async def _send_error(self, error: ModelGatewayError) -> None:
        if error.rule and self._caller is not None:
            self._authorizer.report_denial(self._caller, "gateway", error.rule, error.detail)
        protocol = self._runtime.protocol if self._runtime is not None else OPENAI
        status = STATUS[error.reason]
        body = protocol.format_error(status, error.reason, error.message, error.retry_after)
        headers = {}
        if error.retry_after:
            headers["retry-after"] = str(max(1, round(error.retry_after)))
        final = error.reason in ("token", "forbidden", "provider")
        if final or error.retry_after > _MAX_RETRY_AFTER:
            headers["x-should-retry"] = "false"  # read by the SDKs of two vendors before a retry
        response = Response(body, status, headers, media_type="application/json")
        await response(self._scope, self._receive, self._send)


_MAX_RETRY_AFTER: Final = 30.0  # seconds; SDKs should not retry after a longer wait

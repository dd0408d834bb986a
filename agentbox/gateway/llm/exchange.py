"""One call to a provider, from the queue to the end of the response."""

import asyncio
import json
from typing import Any, Final

import httpcore

from agentbox.core.http.sse_relay import EventSplitter, is_done, usage_data
from agentbox.gateway.llm.concurrency import ConcurrencyTicket
from agentbox.gateway.llm.gateway_counters import GatewayCounters
from agentbox.gateway.llm.key_scrubber import KeyScrubber
from agentbox.gateway.llm.ledger import BudgetLedger
from agentbox.gateway.llm.meter import Meter
from agentbox.gateway.llm.model_request import ModelRequest, ProviderRuntime, encode_body
from agentbox.gateway.llm.reservation import CallSubject, Reservation, Settlement
from agentbox.gateway.llm.upstream import header
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.cost import find_price

MAX_RESPONSE: Final = 32 << 20  # bytes of a response that is not a stream
STALLED_SECONDS: Final = 30.0  # for the agent to accept data: others wait for its slot
_FORWARDED_HEADERS: Final = (
    b"content-type",
    b"retry-after",
    b"retry-after-ms",
    b"request-id",
    b"x-request-id",
    b"x-should-retry",
)
_EVENT_STREAM: Final = b"text/event-stream"


class ModelStreamAborted(Exception):
    """A started response cannot be completed: the connection to the agent must be closed."""


class Exchange:
    """Runs once. `started`: the response head was sent to the agent."""

    def __init__(
        self,
        runtime: ProviderRuntime,
        ledger: BudgetLedger,
        gauges: GatewayCounters,
        request: ModelRequest,
        key: str,
        send: Any,
    ) -> None:
        self._runtime, self._ledger, self._gauges, self._request, self._send = (
            runtime,
            ledger,
            gauges,
            request,
            send,
        )
        self._scrubber, self._header_scrubber = KeyScrubber(key), KeyScrubber(key)
        self._key = key
        self._subject = CallSubject(
            provider=runtime.provider.name,
            model=request.model,
            currency=runtime.provider.currency,
            price=find_price(runtime.provider.prices, request.model),
            max_input=request.max_input,
            is_billable=request.call.generates or request.call.counts_input,
        )
        self._meter = Meter(request.input_tokens, 0)
        self.started = False
        self.status = 0

    async def run(self) -> None:
        """Raises ModelGatewayError for an error response of the gateway, ModelStreamAborted for a
        response that broke off."""
        request, name = self._request, self._runtime.provider.name
        ticket = ConcurrencyTicket.for_caller(request.caller)
        self._ledger.check(request.caller, request.input_tokens, request.choices, self._subject)
        worst_case = request.input_tokens + request.choices * min(request.max_output or 4096, 65536)
        self._gauges.waited_ms[name] += round(
            1000 * await self._runtime.queue.acquire(ticket, worst_case)
        )
        try:
            await self._run_reserved()
        finally:
            self._runtime.queue.release(ticket)

    async def _run_reserved(self) -> None:
        request, name = self._request, self._runtime.provider.name
        reservation = await self._ledger.reserve(
            request.caller,
            request.input_tokens,
            request.max_output,
            request.choices,
            self._subject,
        )
        self._meter.reserved = reservation.tokens
        try:
            hide_usage = self._limit_output(reservation.output)
            await self._send_upstream(hide_usage)
        except asyncio.CancelledError:
            self._meter.aborted = True
            raise
        finally:
            used = self._settlement(reservation)
            self._ledger.finalise(reservation, used)
            self._gauges.add_cost(reservation.call, used.cost)
            for direction, count in (("input", used.tokens.input), ("output", used.tokens.output)):
                self._gauges.tokens[name, request.caller.agent, direction] += count
            if not self._meter.is_exact:
                self._gauges.estimated[name] += 1
            if leaks := self._scrubber.occurrences + self._header_scrubber.occurrences:
                self._gauges.echoes[name] += leaks

    def _settlement(self, reservation: Reservation) -> Settlement:
        """Tokens and cost. An aborted call costs what was reserved; input that the provider did not
        count costs its worst case."""
        meter, price = self._meter, self._subject.price
        tokens, is_counted = meter.settlement
        cost: int | None = None
        if price is not None and (is_counted or tokens.total == 0):
            cost = price.cost(tokens)
        elif price is not None and meter.aborted:
            counted = price.worst_cost(meter.usage.input or 0, reservation.output)
            cost = max(reservation.cost, counted)
        elif price is not None:
            worst = price.worst_cost(max(self._subject.max_input, tokens.input), tokens.output)
            cost = min(worst, reservation.cost)
        return Settlement(tokens=tokens, cost=cost, estimated=not meter.is_exact)

    def _limit_output(self, output: int) -> bool:
        """Sets the output limit. True: the usage event was requested by the gateway and is hidden
        from the agent."""
        request, protocol = self._request, self._runtime.protocol
        if request.body is None or not request.call.generates:
            return False
        max_output = output // request.choices
        if request.max_output is None or max_output < request.max_output:
            protocol.set_max_output(request.call, request.body, max_output)
        return request.streams and protocol.request_usage(request.call, request.body)

    async def _send_upstream(self, hide_usage: bool) -> None:
        request = self._request
        body = b"" if request.body is None else encode_body(request.body)
        headers = [
            (b"host", self._runtime.upstream.host()),
            *request.headers,
            *self._runtime.protocol.auth_headers(self._key),
        ]
        if request.body is not None:
            headers += [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ]
        deadline = asyncio.get_running_loop().time() + self._runtime.provider.timeout_seconds
        self._meter.sent = True
        response = await self._runtime.upstream.send(
            request.method, request.target, headers, body, deadline
        )
        try:
            await self._relay(response, hide_usage)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            if self.started:
                raise ModelStreamAborted from error
            raise ModelGatewayError(
                "provider", "the provider closed the connection during its response"
            ) from error
        finally:
            await response.aclose()

    async def _relay(self, response: httpcore.Response, hide_usage: bool) -> None:
        self.status = response.status
        if response.status in (401, 403):  # the body may contain part of the key
            raise ModelGatewayError(
                "provider",
                f"the provider {self._runtime.provider.name} rejected the key of this box"
                f" (HTTP {response.status})",
            )
        if not 200 <= response.status < 300 and response.status < 400:
            raise ModelGatewayError(
                "provider",
                f"the provider returned the unexpected status HTTP {response.status}",
            )
        if header(response, b"content-encoding") not in (b"", b"identity"):
            raise ModelGatewayError(
                "provider", "the provider compressed its response although identity was requested"
            )
        self._meter.accepted = response.status < 300
        if (
            self._request.streams
            and header(response, b"content-type").split(b";")[0].strip() == _EVENT_STREAM
        ):
            await self._relay_stream(response, hide_usage)
        else:
            await self._relay_body(response)

    async def _relay_body(self, response: httpcore.Response) -> None:
        chunks: list[bytes] = []
        async for chunk in response.aiter_stream():
            self._meter.bytes += len(chunk)
            if self._meter.bytes > MAX_RESPONSE:
                raise ModelGatewayError(
                    "provider", f"the provider's response is larger than {MAX_RESPONSE} bytes"
                )
            chunks.append(chunk)
        body = b"".join(chunks)
        if self._meter.accepted:
            body = self._read_document(body)
        body = self._scrubber.scrub(body)
        await self._send_head(response, len(body))
        await self._send_message({"type": "http.response.body", "body": body})

    def _read_document(self, body: bytes) -> bytes:
        """Records the usage and removes models that are not allowed."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(document, dict):
            return body
        if usage := self._runtime.protocol.usage(document):
            usage.final = True
            self._meter.usage.add(usage)
        if self._request.call.lists:
            self._runtime.protocol.filter_models(document, self._request.is_model_allowed)
            return json.dumps(document).encode()
        return body

    async def _relay_stream(self, response: httpcore.Response, hide_usage: bool) -> None:
        await self._send_head(response, None)
        events = EventSplitter()
        async for chunk in response.aiter_stream():
            self._meter.bytes += len(chunk)
            passed = [event for event in events.feed(chunk) if self._should_pass(event, hide_usage)]
            if passed and (clean := self._scrubber.feed(b"".join(passed))):
                await self._send_message(
                    {"type": "http.response.body", "body": clean, "more_body": True}
                )
        remainder = events.flush()
        last = (
            self._scrubber.feed(remainder if self._should_pass(remainder, hide_usage) else b"")
            + self._scrubber.finish()
        )
        self._end_of_stream()
        await self._send_message({"type": "http.response.body", "body": last})

    def _should_pass(self, event: bytes, hide_usage: bool) -> bool:
        document = usage_data(event)
        if document is None:
            if is_done(event):
                self._end_of_stream()
            return True
        self._meter.usage.add(self._runtime.protocol.usage(document))
        return not (hide_usage and self._runtime.protocol.is_usage_only(document))

    def _end_of_stream(self) -> None:
        """The provider sent its whole response: no further usage follows."""
        usage = self._meter.usage
        if self._runtime.protocol.last_usage_is_final and usage.input is not None:
            usage.final = True

    async def _send_head(self, response: httpcore.Response, length: int | None) -> None:
        headers = [
            (key.lower(), self._header_scrubber.scrub(value))
            for key, value in response.headers
            if key.lower() in _FORWARDED_HEADERS
        ]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        self.started = True
        await self._send_message(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )

    async def _send_message(self, message: dict[str, Any]) -> None:
        """Sends to the agent. Raises ModelStreamAborted if the agent accepts no data."""
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await self._send(message)
        except TimeoutError as error:
            self._meter.aborted = True
            raise ModelStreamAborted from error

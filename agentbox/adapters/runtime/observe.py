"""Span, counters, duration and log line of each slot call. Arguments are never recorded."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import SlotName
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.spans import TraceSpan, Tracing
from agentbox.core.slot_errors import (
    AdapterDisabled,
    AdapterError,
    AdapterWriteRejected,
    SlotUnavailable,
)

_log = structlog.get_logger()

OUTCOMES = {
    400: "invalid",
    403: "denied",
    404: "not_found",
    409: "conflict",
    410: "precondition",
    412: "precondition",
    413: "invalid",
    415: "invalid",
    422: "invalid",
    429: "quota",
    504: "timeout",
    507: "quota",
}
# Outcomes logged as warnings. `unavailable` is reported once, by the slot's state.
WARN_OUTCOMES = frozenset({"timeout", "rejected", "error"})


@dataclass(slots=True)
class SlotCall:
    """One call on its way through the stages."""

    impl: str
    span: TraceSpan
    reached: bool = False  # an adapter was called, not the refusing fallback


def outcome_of(error: BaseException) -> str:
    """Return the `outcome` label of an error."""
    match error:
        case AdapterDisabled():
            return "disabled"
        case SlotUnavailable():
            return "unavailable"
        case AdapterWriteRejected():
            return "rejected"
        case AdapterError():
            return OUTCOMES.get(error.status, "error")
        case asyncio.CancelledError() | GeneratorExit():
            return "cancelled"
    return "error"


@contextmanager
def observe_call(
    slot: SlotName, method: str, impl: str, spans: Tracing, metrics: Metrics
) -> Iterator[SlotCall]:
    """Observe one call. `impl` is the configured class until the call sets the class that served
    it."""
    caller, loop = context.current(), asyncio.get_running_loop()
    caller_fields = {
        "request_id": caller.request_id,
        "agent_id": caller.agent_id or "",
        "session_id": caller.session_id or "",
        "trace_id": caller.trace_id or "",
    }
    started, outcome, kind = loop.time(), "ok", ""
    with spans.span(
        f"agentbox.adapter.{slot}.{method}",
        {f"agentbox.{name}": value for name, value in caller_fields.items()},
    ) as span:
        call = SlotCall(impl, span)
        try:
            yield call
        except BaseException as error:
            outcome = outcome_of(error)
            kind = error.code if isinstance(error, AdapterError) else type(error).__name__
            span.set("error.type", kind)
            raise
        finally:
            seconds = loop.time() - started
            span.set("adapter.impl", call.impl)
            metrics.dispatch.labels(slot, method, call.impl, outcome).inc()
            metrics.duration.labels(slot, method, call.impl).observe(seconds)
            log_call = _log.warning if outcome in WARN_OUTCOMES else _log.debug
            log_call(
                "slot call",
                slot=slot,
                method=method,
                impl=call.impl,
                outcome=outcome,
                error=kind,
                seconds=round(seconds, 6),
                **caller_fields,
            )

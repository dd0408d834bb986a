"""Spans around slot calls. OpenTelemetry is imported by the program that exports, and by nobody else: it costs start time."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class TraceSpan(Protocol):
    """One call, as a trace shows it."""

    def set(self, name: str, value: str) -> None: ...


class Tracing(Protocol):
    """Opens a span for the length of a block."""

    def span(
        self, name: str, attributes: Mapping[str, str]
    ) -> AbstractContextManager[TraceSpan]: ...


class _NullSpan:
    def set(self, name: str, value: str) -> None:
        """Nobody looks."""


class NoTracing:
    """Where no trace endpoint is configured."""

    _null_span = _NullSpan()

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str]) -> Iterator[TraceSpan]:
        yield self._null_span


class OtelTracing:
    """Spans of an OpenTelemetry tracer."""

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str]) -> Iterator[TraceSpan]:
        with self._tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False
        ) as span:
            yield _OtelSpan(span.set_attribute)


class _OtelSpan:
    def __init__(self, set_attribute: "SetAttribute") -> None:
        self._set_attribute = set_attribute

    def set(self, name: str, value: str) -> None:
        self._set_attribute(name, value)


class SetAttribute(Protocol):
    """`Span.set_attribute` of OpenTelemetry."""

    def __call__(self, key: str, value: str) -> None: ...

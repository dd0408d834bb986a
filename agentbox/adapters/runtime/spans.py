"""Spans around slot calls. OpenTelemetry is imported by the program that exports, and by nobody else: it costs start time."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class Span(Protocol):
    """One call, as a trace shows it."""

    def set(self, name: str, value: str) -> None: ...


class Spans(Protocol):
    """Opens a span for the length of a block."""

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]: ...


class _NoSpan:
    def set(self, name: str, value: str) -> None:
        """Nobody looks."""


class NoSpans:
    """Where no trace endpoint is configured."""

    _none = _NoSpan()

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str]) -> Iterator[Span]:
        yield self._none


class OtelSpans:
    """Spans of an OpenTelemetry tracer."""

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str]) -> Iterator[Span]:
        with self._tracer.start_as_current_span(name, attributes=dict(attributes), record_exception=False) as span:
            yield _OtelSpan(span.set_attribute)


class _OtelSpan:
    def __init__(self, put: "Put") -> None:
        self._put = put

    def set(self, name: str, value: str) -> None:
        self._put(name, value)


class Put(Protocol):
    """`Span.set_attribute` of OpenTelemetry."""

    def __call__(self, key: str, value: str) -> None: ...

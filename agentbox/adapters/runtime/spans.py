"""Spans of slot calls. Only a program that exports traces imports OpenTelemetry, because the import
slows the start."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class TraceSpan(Protocol):
    """The span of one call."""

    def set(self, name: str, value: str) -> None: ...


class Tracing(Protocol):
    """Opens a span for the duration of a block."""

    def span(
        self, name: str, attributes: Mapping[str, str]
    ) -> AbstractContextManager[TraceSpan]: ...


class _NullSpan:
    def set(self, name: str, value: str) -> None:
        """Do nothing."""


class NoTracing:
    """Used if no trace endpoint is configured."""

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

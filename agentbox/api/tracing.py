"""Traces of slot calls, exported by OTLP over HTTP."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from agentbox import __version__
from agentbox.adapters.spans import OtelSpans


def spans_to(endpoint: str, box: str) -> OtelSpans:
    """Spans that are sent to `<endpoint>/v1/traces` in the background; what cannot be sent is dropped and logged."""
    resource = Resource({"service.name": "agentbox", "service.version": __version__, "service.instance.id": box})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
    return OtelSpans(provider.get_tracer("agentbox"))

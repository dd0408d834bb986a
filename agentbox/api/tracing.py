"""Traces of slot calls, exported by OTLP over HTTP."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from agentbox import __version__
from agentbox.adapters.runtime.context import current
from agentbox.adapters.runtime.spans import OtelTracing


class _TraceIdGenerator(RandomIdGenerator):
    """Traces use the trace id of the journal."""

    def generate_trace_id(self) -> int:
        trace_id = current().trace_id
        return int(trace_id, 16) if trace_id else super().generate_trace_id()


def make_spans(endpoint: str, box: str) -> OtelTracing:
    """Spans are sent to `<endpoint>/v1/traces` in the background; failures are dropped and
    logged.
    """
    resource = Resource(
        {"service.name": "agentbox", "service.version": __version__, "service.instance.id": box}
    )
    provider = TracerProvider(resource=resource, id_generator=_TraceIdGenerator())
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"))
    )
    return OtelTracing(provider.get_tracer("agentbox"))

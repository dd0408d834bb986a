"""Traces of slot calls, exported by OTLP over HTTP."""

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from agentbox import __version__
from agentbox.adapters.runtime.context import current
from agentbox.adapters.runtime.spans import OtelTracing
from agentbox.policy.outgoing import DIRECT, Outgoing


class _TraceIdGenerator(RandomIdGenerator):
    """Traces use the trace id of the journal."""

    def generate_trace_id(self) -> int:
        trace_id = current().trace_id
        return int(trace_id, 16) if trace_id else super().generate_trace_id()


def make_spans(endpoint: str, box: str, outgoing: Outgoing = DIRECT) -> OtelTracing:
    """Spans are sent to `<endpoint>/v1/traces` in the background; failures are dropped and
    logged.
    """
    resource = Resource(
        {"service.name": "agentbox", "service.version": __version__, "service.instance.id": box}
    )
    provider = TracerProvider(resource=resource, id_generator=_TraceIdGenerator())
    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces",
        certificate_file=outgoing.all_authorities or None,
        session=_session(outgoing.proxy_for(endpoint)),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return OtelTracing(provider.get_tracer("agentbox"))


def _session(proxy: str) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.proxies = dict.fromkeys(("http", "https"), proxy) if proxy else {}
    return session

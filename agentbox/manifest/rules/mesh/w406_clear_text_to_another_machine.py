"""W406: content without encryption."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import clear_text_host, is_loopback
from agentbox.manifest.rules.context import RuleContext

_KEYS = ("observability.otlp_endpoint", "sovereign_mesh.relays", "sovereign_mesh.relay.url")

CODE, SINCE = "W406", "0.1"
TITLE = "clear text to another machine"
REASON = """Prompts, responses, events and traces are content. Without TLS they are readable on the
network, as is the credential sent with a prompt."""
READS = (*_KEYS, "providers", "providers.*.base_url")
BAD = """
[observability]
otlp_endpoint = "http://traces.lan:4318"
"""
GOOD = """
[observability]
otlp_endpoint = "https://traces.lan:4318"
"""
EACH = ("", "providers")


_THIS_MACHINE = "host.docker.internal"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key and address."""
    for key in ("providers.*.base_url",) if context.table else _KEYS:
        for url in [context[key]] if isinstance(context[key], str) else context[key]:
            host = clear_text_host(url)
            if host is not None and host != _THIS_MACHINE and not is_loopback(host):
                yield context.finding(
                    key,
                    message=f"{context.path(key)} sends content to {host} in the clear",
                    remedy=f"Write {context.path(key)} with "
                    f"{'wss' if url.startswith('ws') else 'https'}.",
                )

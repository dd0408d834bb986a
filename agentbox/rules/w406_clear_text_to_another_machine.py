"""W406: content in the clear."""

from collections.abc import Iterator

from agentbox.manifest import Finding
from agentbox.rules._hosts import clear_text_host, is_loopback
from agentbox.rules.view import View

CODE, SINCE = "W406", "0.1"
TITLE = "clear text to another machine"
WHY = "Traces carry names of agents, routes and errors. Without TLS they are readable on the way."
READS = ("observability.otlp_endpoint",)
BAD = """
[observability]
otlp_endpoint = "http://traces.lan:4318"
"""
GOOD = """
[observability]
otlp_endpoint = "https://traces.lan:4318"
"""


_THIS_MACHINE = "host.docker.internal"


def check(view: View) -> Iterator[Finding]:
    """One finding a key."""
    key = "observability.otlp_endpoint"
    host = clear_text_host(view[key])
    if host is not None and host != _THIS_MACHINE and not is_loopback(host):
        yield view.finding(
            key, message=f"{key} sends content to {host} in the clear", remedy=f"Write {key} with https."
        )
